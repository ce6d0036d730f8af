"""Logs drawn at random, cut into small blocks: what is kept of every one, to the byte.

`whole_excerpts.tsv` is the record, a log a line: how many lines it has, how many are kept, a digest of them.
After the cutting changed, `python tests/bundle/test_whole_excerpts.py` writes it anew. What should be kept is
for `test_excerpts.py` to say.
"""

from __future__ import annotations

import io
from pathlib import Path
from random import Random
from unittest.mock import patch
from zlib import crc32

import pytest

from envdoctor.bundling import excerpts

RECORD = Path(__file__).with_name("whole_excerpts.tsv")
LOGS = 24
PREFIXES = ("", "", "[rank0]: ", "(Worker pid=7) ", "node-1: [x] ")
BODY = ('  File "a.py", line 3, in f', "    g()", "", "During handling of the above exception:", "  | x")
ENDS = ("ValueError: no", "after", "then", "| more", "Compile with `X`", "last")
TELLING = (
    "ERROR node {}",
    "Killed",
    "NCCL WARN {}",
    "0x{} undefined symbol",
    "panic {}",
    "error: {}",
    "Xid {}",
)


def drawn(number: int) -> bytes:
    """Return log `number`: steps, tracebacks of all lengths, telling lines, bars, endless lines."""
    dice, lines = Random(number), []
    for _ in range(dice.choice((3, 40, 160))):
        lines += [f"step {n}" for n in range(dice.choice((0, 1, 3, 14, 15, 16, 70)))]
        kind, prefix = dice.random(), dice.choice(PREFIXES)
        if kind < 0.5:
            lines.append(f"{prefix}Traceback (most recent call last):")
            lines += [prefix + dice.choice(BODY) for _ in range(dice.choice((1, 4, 9, 260)))]
            lines += [prefix + word for word in ENDS[: dice.randint(1, len(ENDS))]]
        elif kind < 0.85:
            lines.append(dice.choice(TELLING).format(dice.randint(0, 99)))
        elif kind < 0.95:
            lines.append("10%|#\r" + "x" * dice.choice((3, 4095, 4096, 4097)) + dice.choice(("", "\r")))
        else:
            lines.append("y" * dice.choice((9000, 40_000)) + "Error")
    return "\n".join(lines).encode() + dice.choice((b"", b"\n", b"\n\n"))


def line(number: int) -> str:
    """Return the record's line of a log."""
    log = drawn(number)
    with (
        patch.object(excerpts, "_BLOCK", (700, 5000)[number % 2]),
        patch.object(excerpts, "_LONGEST_CARRY", 20_000),
    ):
        kept = excerpts.excerpt(io.BytesIO(log))
    whole = (kept.lines, kept.line_count, kept.byte_count, kept.text())
    return f"{log.count(10)}\t{len(kept.lines)}\t{crc32(repr(whole).encode()):08x}"


@pytest.mark.parametrize("number", range(LOGS))
def test_a_log_is_cut_as_it_was(number: int) -> None:
    assert line(number) == RECORD.read_text(encoding="utf-8").splitlines()[number]


if __name__ == "__main__":
    RECORD.write_text("".join(f"{line(n)}\n" for n in range(LOGS)), encoding="utf-8")
