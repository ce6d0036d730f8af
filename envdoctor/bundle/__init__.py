"""A report that a maintainer can act on and that leaks nothing: redaction, archive, tracker templates."""
