"""The ways to reach nodes, one file each: every one yields a reply for each node, as it comes."""
