"""What this machine says of itself: each source read by one guarded probe, answered as plain JSON terms.

Nothing here imports the rest of envdoctor, needs more than the standard library, or is newer than Python 3.8,
so that the folder travels to other machines as one file.
"""

from __future__ import annotations

from .asking import NotKnown
from .interpreter import NoInterpreter
from .reading import PROBES, read_machine, start_reading

__all__ = ["PROBES", "NoInterpreter", "NotKnown", "read_machine", "start_reading"]
