"""Choosing the fastest setting of a run that cannot run out of memory, and writing it for a framework."""
