"""A report that a maintainer can act on and that leaks nothing: redaction, archive, tracker templates."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from envdoctor.bundle.building import Bundle, build_bundle, preview, write_bundle
from envdoctor.bundle.reading import BundleContents, read_bundle, read_contents
from envdoctor.bundle.redaction import Redactor
from envdoctor.bundle.sharing import redact_diagnosis, redact_facts
from envdoctor.bundle.trackers import find_tracker

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


class _CallableRoom(ModuleType):
    """Lets `envdoctor.bundle(...)` be the library's function although this room bears the same name."""

    def __call__(self, *arguments: Any, **options: Any) -> Bundle:
        """Call `envdoctor.library.bundle`."""
        from envdoctor.library import bundle

        return bundle(*arguments, **options)


sys.modules[__name__].__class__ = _CallableRoom
