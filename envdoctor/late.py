"""Modules without others that they need only for what is hardly ever asked of them."""

import sys


def import_late(name: str, *needed: str) -> None:
    """Import a module, unless it is, and modules that it needs only when something in them is asked for."""
    late = [] if name in sys.modules else [one for one in needed if one not in sys.modules]
    for one in late:
        sys.modules[one] = _late(one)
    try:
        __import__(name)
    finally:
        for one in late:
            del sys.modules[one]


def _late(name: str):  # type: ignore[no-untyped-def]
    """Return what looks an attribute up in a module that is imported only then."""
    late = type(sys)(name)
    if name == "gettext":
        late.gettext = lambda text: text  # type: ignore[attr-defined]
        late.ngettext = lambda one, many, count: one if count == 1 else many  # type: ignore[attr-defined]
    elif name == "urllib.parse":
        late.quote_from_bytes = lambda *told: _attribute(name, "quote_from_bytes")(*told)  # type: ignore[attr-defined]
    else:
        late.__getattr__ = lambda attribute: _attribute(name, attribute)  # type: ignore[method-assign]
    if name == "logging":
        late.getLogger = lambda *of: _late_logger(*of)  # type: ignore[attr-defined]
    return late


def _attribute(name: str, attribute: str):  # type: ignore[no-untyped-def]
    __import__(name)
    return getattr(sys.modules[name], attribute)


def _late_logger(*of: str):  # type: ignore[no-untyped-def]
    late = type(sys)("logger")
    late.__getattr__ = lambda attribute: getattr(__import__("logging").getLogger(*of), attribute)  # type: ignore[method-assign]
    return late
