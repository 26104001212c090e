"""Models: pure functions that draw a step's randomness and advance a state; loops, batching and devices live elsewhere."""
