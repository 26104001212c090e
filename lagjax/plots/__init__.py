"""Pictures of results."""

from lagjax.plots.load_sweep import plot_load_sweep

__all__ = ["plot_load_sweep"]
