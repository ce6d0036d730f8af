"""Pins: the best set of versions for a request and a target, or why there is none."""
