"""People's files: match scores, observed durations, and the instance that they make."""

from lagjax.data.build import instance_from_files
from lagjax.data.durations import read_durations
from lagjax.data.prepare import normalise, subsample
from lagjax.data.scores import read_scores
from lagjax.data.service import parse_service
from lagjax.data.table import ScoreTable

__all__ = [
    "ScoreTable", "instance_from_files", "normalise", "parse_service", "read_durations", "read_scores", "subsample",
]  # fmt: skip
