from __future__ import annotations

import io
import tracemalloc

import pytest

from envdoctor.bundling import excerpts
from envdoctor.bundling.excerpts import ERROR_KINDS, HEAD_LINES, LINE_LIMIT, TAIL_LINES, excerpt, read_excerpt
from envdoctor.errors import InputError

TRACEBACK = (
    "[rank0]: Traceback (most recent call last):\n"
    '[rank0]:   File "train.py", line 3, in main\n'
    "[rank0]:     loss.backward()\n"
    "[rank0]: RuntimeError: CUDA error: device-side assert triggered\n"
    "[rank0]: Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
)


def steps(first: int, count: int) -> str:
    return "".join(f"step {i} loss 0.5\n" for i in range(first, first + count))


def text_of(log: str) -> str:
    return excerpt(io.BytesIO(log.encode())).text()


def test_a_short_log_is_kept_whole():
    log = steps(0, 20) + TRACEBACK
    assert text_of(log) == log


def test_a_traceback_is_kept_with_the_lines_before_it():
    shown = text_of(steps(0, 5000) + TRACEBACK + steps(5000, 5000))
    assert TRACEBACK in shown
    assert "step 4999 loss" in shown
    assert "step 4990 loss" in shown
    assert "step 4000 loss" not in shown
    assert "lines left out …]" in shown


def test_head_and_tail_are_kept():
    shown = text_of(steps(0, 5000)).splitlines()
    assert shown[0] == "step 0 loss 0.5"
    assert shown[HEAD_LINES] == f"[… {5000 - HEAD_LINES - TAIL_LINES:,} lines left out …]"
    assert shown[-1] == "step 4999 loss 0.5"


def test_the_first_and_the_last_of_many_tracebacks_are_kept():
    log = "".join(steps(i * 100, 100) + TRACEBACK.replace("assert", f"assert-{i}-") for i in range(400))
    shown = text_of(log + steps(0, 500))
    assert "assert-0-" in shown
    assert "assert-399-" in shown
    assert len(shown) < 300_000


def test_a_chain_of_exceptions_is_one():
    chain = (
        TRACEBACK + "\nDuring handling of the above exception, another exception occurred:\n\n" + TRACEBACK
    )
    assert chain in text_of(steps(0, 900) + chain + steps(0, 900))


def test_an_error_line_is_kept_once_a_kind():
    log = steps(0, 500) + "".join(f"ERROR node {i} lost\n" for i in range(300)) + steps(0, 500)
    shown = text_of(log)
    assert "ERROR node 0 lost" in shown
    assert shown.count("ERROR node") <= 4


def test_progress_bars_and_endless_lines_are_cut():
    log = "10%|#\r50%|#####\r100%|##########\n" + "x" * 1_000_000 + "\nend\n"
    shown = text_of(log)
    assert shown.startswith("100%|##########\n")
    assert max(map(len, shown.splitlines())) <= LINE_LIMIT + 20
    assert shown.endswith("end\n")


def test_memory_is_bounded_whatever_comes():
    class Endless(io.RawIOBase):
        left = 6 << 20

        def read(self, size: int = -1) -> bytes:
            if self.left <= 0:
                return b""
            self.left -= size
            return (TRACEBACK.encode() * (size // len(TRACEBACK) + 1))[:size]

    tracemalloc.start()
    found = excerpt(Endless())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20
    assert len(found.lines) < 3000


def test_an_error_that_comes_again_is_kept_once_and_so_many_kinds_of_them():
    again = "".join(f"worker {i} says\nERROR: step {i} failed\n" for i in range(400))
    assert text_of(steps(0, 900) + again + steps(0, 900)).count("ERROR") == 1
    kinds = "".join(f"it says\nERROR: {chr(97 + i // 26)}{chr(97 + i % 26)} failed\n" for i in range(400))
    assert text_of(steps(0, 900) + kinds + steps(0, 900)).count("ERROR") == ERROR_KINDS


def kept(log: str) -> str:
    """Return the numbers of the kept lines as ranges: `1-30 941-1000`."""
    numbers = [number for number, _ in excerpt(io.BytesIO(log.encode())).lines]
    firsts = [n for n in numbers if n - 1 not in numbers]
    lasts = [n for n in numbers if n + 1 not in numbers]
    return " ".join(f"{first}-{last}" for first, last in zip(firsts, lasts, strict=True))


FRAMES = "Traceback (most recent call last):\n" + '  File "x.py", line 1, in f\n' * 300
LARGE = "x" * 3000 + "\n"


@pytest.mark.parametrize(
    ("log", "lines"),
    [
        ("", ""),
        (steps(0, 90), "1-90"),
        (steps(0, 91), "1-30 32-91"),
        (steps(0, 200) + "ERROR: no\n" + steps(0, 200), "1-30 198-201 342-401"),
        (steps(0, 2) + "ERROR: no\n" + steps(0, 200), "1-30 144-203"),
        (steps(0, 200) + "ERROR: no\nERROR: yes\nERROR: no\n" + steps(0, 200), "1-30 198-202 344-403"),
        (steps(0, 200) + TRACEBACK + steps(0, 200), "1-30 186-211 346-405"),
        (steps(0, 200) + TRACEBACK * 2 + steps(0, 200), "1-30 186-216 351-410"),
        (steps(0, 200) + FRAMES + steps(0, 200), "1-30 186-450 642-701"),
        (steps(0, 9) + FRAMES + steps(0, 200), "1-259 451-510"),
        ((steps(0, 50) + FRAMES) * 2 + steps(0, 99), "1-30 36-300 387-651 742-801"),
        (
            (steps(0, 50) + FRAMES) * 5 + steps(0, 99),
            "1-30 36-300 387-651 738-1002 1101-1104 1440-1704 1795-1854",
        ),
        (LARGE * 500, "1-30 441-500"),
        (LARGE * 500 + TRACEBACK + LARGE * 500, "1-30 486-511 946-1005"),
        ((FRAMES + LARGE * 99) * 5, "1-250 386-650 786-1050 1586-1850 1941-2000"),
    ],
)
def test_of_a_log_just_these_lines_are_kept(log, lines):
    assert kept(log) == lines
    shown = text_of(log).splitlines()
    gaps = [int(line.split()[1].replace(",", "")) for line in shown if line.startswith("[… ")]
    assert len(shown) - len(gaps) + sum(gaps) == log.count("\n")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("x" * LINE_LIMIT, "x" * LINE_LIMIT),
        ("x" * LINE_LIMIT + "y", "x" * LINE_LIMIT + " [... cut]"),
        ("\n a\r\r", "\n a"),
        ("a\rb\r", "b"),
        ("\ra", "a"),
        ("\r", ""),
    ],
)
def test_of_a_line_what_stands_there_at_last_is_kept(line, shown):
    assert text_of(f"{line}\n") == f"{shown}\n"


@pytest.mark.parametrize(("limit", "refused"), [(199, True), (200, False), (201, False)])
def test_a_log_of_the_largest_size_is_read_and_a_larger_one_is_not(limit, refused, tmp_path, monkeypatch):
    monkeypatch.setattr(excerpts, "LARGEST", limit)
    path = tmp_path / "train.log"
    path.write_bytes((b"x" * 49 + b"\n") * 4)
    if refused:
        with pytest.raises(InputError, match=r"train\.log: more than"):
            read_excerpt(path)
    else:
        assert read_excerpt(path).byte_count == 200


@pytest.mark.parametrize("limit", [199, 200])
def test_a_stream_is_read_up_to_the_largest_size(limit, monkeypatch):
    monkeypatch.setattr(excerpts, "LARGEST", limit)
    stream = io.BytesIO((b"x" * 49 + b"\n") * 4)
    if limit < 200:
        with pytest.raises(excerpts._Endless):
            excerpt(stream)
    else:
        assert excerpt(stream).byte_count == 200
