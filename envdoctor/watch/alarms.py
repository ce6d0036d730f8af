"""What moments give cause to say: each judge reads them one by one, live or from a recording alike."""

from __future__ import annotations

from collections.abc import Iterable

from envdoctor.watch.moment import Alarm, Header, Moment


class Judge:
    """All judges together; an alarm is said once, and again when it has become much more urgent."""

    def __init__(self, header: Header) -> None:
        self._header = header

    def feed(self, moment: Moment) -> Iterable[Alarm]:
        """Return what this moment gives cause to say."""
        return ()
