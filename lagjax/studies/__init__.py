"""Studies: each a specification, cells as jobs, one Dataset, and its rows, table, pictures and sections of a report."""
