"""Solutions of OCC-LP on disk: csv with the file's own ids for people, npz for programs; both read back into the same policy."""

from lagjax.prices.files import FILES, load_policy, read_solution, save_solution
from lagjax.prices.stored import Stored, stored

__all__ = ["FILES", "Stored", "load_policy", "read_solution", "save_solution", "stored"]
