"""What this machine says of itself: each source read by one guarded probe, answered as plain JSON terms.

Nothing here imports the rest of envdoctor, needs more than the standard library, or is newer than Python 3.8,
so that the folder travels to other machines as one file.
"""

from __future__ import annotations

from .typed import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .asking import NotKnown
    from .interpreter import NoInterpreter
    from .reading import COMPARED, PROBES, read_machine, start_reading

__all__ = ["COMPARED", "PROBES", "NoInterpreter", "NotKnown", "read_machine", "start_reading"]
_HOMES = {"NotKnown": "asking", "NoInterpreter": "interpreter"}


def __getattr__(name: str) -> Any:
    """Read the probes when they are first asked for: a pasted text needs none of them."""
    if name not in __all__:
        raise AttributeError("nothing here is called {}".format(name))
    from importlib import import_module

    return getattr(import_module("." + _HOMES.get(name, "reading"), __name__), name)
