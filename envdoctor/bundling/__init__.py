"""A report that a maintainer can act on and that leaks nothing: redaction, archive, tracker templates."""

from __future__ import annotations

from envdoctor.bundling.building import Bundle, build_bundle, preview, write_bundle
from envdoctor.bundling.reading import BundleContents, read_bundle, read_contents
from envdoctor.bundling.redaction import Redactor
from envdoctor.bundling.sharing import redact_diagnosis, redact_facts
from envdoctor.bundling.trackers import find_tracker

__all__ = [
    "Bundle",
    "BundleContents",
    "Redactor",
    "build_bundle",
    "find_tracker",
    "preview",
    "read_bundle",
    "read_contents",
    "redact_diagnosis",
    "redact_facts",
    "write_bundle",
]
