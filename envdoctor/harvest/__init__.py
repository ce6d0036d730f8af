"""Reading the world: package indexes, archives and sources, and making of them what the matrix ships."""
