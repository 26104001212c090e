"""A page with awkward names, for the tests of the report with and without a browser."""

from lagjax.gallery import priority
from lagjax.instance import make_instance
from lagjax.policies import from_priorities
from lagjax.studies.load_sweep import sweep

NAME = 'a<b>&"quoted" $x$ of-a-rather-long-system-name_without_any_break_in_it'


def finished(out):
    """A small sweep of a gallery instance and one with an awkward name, written as the command line does."""
    from lagjax.studies.dataset import save

    awkward = make_instance([[1.0, 0.4, 0.2], [0.3, 1.0, 0.1]], [0.1, 0.2, 0.7], load=0.4, name=NAME)

    def mine(instance):
        return from_priorities(instance.scores, name="<script>alert(1)</script>")

    data = sweep(
        [priority(), awkward], loads=[0.3, 0.6], policies=["lag", "random", mine], steps=400, replicas=8, out=out
    )
    save(data, out / "sweep.nc")
    return data
