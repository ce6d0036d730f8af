"""Container images: what a Dockerfile would make, and what the layers of an image hold; nothing is run."""
