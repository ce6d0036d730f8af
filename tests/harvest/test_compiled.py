"""Messages out of the string tables of binaries."""

from __future__ import annotations

from envdoctor.harvest.compiled import QUIET, scan_binary
from envdoctor.harvest.messages import HOLE

CHECK = b"Expected all gizmos to be on the same wheel, but found"
CALL = b"Call to %s failed with %5ld bytes left"
NOISE = (
    b"_ZN3c104cuda9SetDeviceEi",
    b"aten::gizmo(Tensor self, int dim) only",
    b"/usr/include/gizmo/wheel.h must be there",
    b"a wheel that turns on its axle",
    b"not found",
)
BINARY = b"\0".join((b"\x7fELF", *NOISE, CHECK, CALL, CHECK, b""))


def found(*pieces: bytes) -> list[str]:
    return [message.template for message in scan_binary(pieces)]


def test_texts_that_complain_are_messages_once_with_holes() -> None:
    assert found(BINARY) == [CHECK.decode(), f"Call to {HOLE} failed with {HOLE} bytes left"]


def test_a_text_may_lie_across_two_pieces() -> None:
    middle = BINARY.index(CHECK) + 20
    assert found(BINARY[:middle], BINARY[middle:]) == found(BINARY)


def test_reading_ends_where_no_more_messages_come() -> None:
    def pieces():
        yield BINARY
        yield bytes(QUIET + 1)
        raise AssertionError("read on")

    assert found(*[BINARY]) == [m.template for m in scan_binary(pieces())]
