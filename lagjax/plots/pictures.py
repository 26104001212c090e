"""Pictures in files: whole or absent, and silent about letters that the font lacks, which it shows as boxes."""

from __future__ import annotations

import warnings

from matplotlib.figure import Figure

from lagjax.runs.files import write_whole

DPI = 150


def keep_picture(figure: Figure, path) -> None:
    """Writes a figure in the format that the path's ending names.

    Raises:
      InputError: the file cannot be written.
    """
    write_whole(path, lambda temporary: draw(figure, temporary, dpi=DPI))


def draw(figure: Figure, target, **options) -> None:
    """`figure.savefig`, without a warning for every letter of a user's name that the font lacks."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(target, **options)
