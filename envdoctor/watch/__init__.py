"""Watching a run from outside: passed through untouched, read, foretold, and explained when it dies."""
