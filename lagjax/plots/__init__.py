"""Pictures of results."""

from lagjax.plots.convergence import plot_convergence
from lagjax.plots.load_sweep import plot_load_sweep

__all__ = ["plot_convergence", "plot_load_sweep"]
