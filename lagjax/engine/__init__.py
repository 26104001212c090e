"""The engine: random streams, exact tallies and the one driver that owns loops, batches and devices."""
