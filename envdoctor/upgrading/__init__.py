"""Judging code before it breaks: what it uses of libraries, and what their releases took away."""
