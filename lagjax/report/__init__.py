"""One self-contained page about a finished study."""
