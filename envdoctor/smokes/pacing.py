"""How fast something goes, measured in the examined interpreter, and what nvidia-smi shows of it meanwhile.

Runs under any Python from 3.8 with any torch; nothing here is imported by the parent.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .holding import visible_cards

if TYPE_CHECKING:
    from .ops.context import Context
    from .ops.trial import Pace

WARM_S = 0.25
ROUND_S = 0.03
ROUNDS = 9
LOOK_S = 4.0
"""Longer than this nobody waits for nvidia-smi: the figure stands without what it shows."""
SHOWN = (
    "pcie.link.gen.current", "pcie.link.gen.max", "pcie.link.width.current", "pcie.link.width.max",
    "clocks.sm", "clocks.max.sm", "clocks.mem", "clocks.max.mem", "temperature.gpu", "power.draw",
    "power.limit", "clocks_throttle_reasons.active",
)  # fmt: skip


def synchronise(ctx: Context) -> None:
    """Wait for the device; an error that a kernel left behind is raised here."""
    if ctx.on_gpu:
        for index in ctx.gpus:
            ctx.torch.cuda.synchronize(index)


def measure_pace(pace: Pace, unit: str, ctx: Context, say: Callable[[str], None]) -> dict[str, Any]:
    """Return the verdict of a speed in JSON terms: its median rate, once what was made proved right."""
    look = Look(ctx.gpus) if ctx.on_gpu and len(ctx.gpus) == 1 else None
    say("measuring")
    ways = [pace] if pace.way_back is None else [pace, pace.way_back]
    figure = min(median_pace(way, ctx, look) for way in ways) if pace.finished is None else pace.finished
    say("looking at what was made")
    fault = next(filter(None, (way.verify() for way in ways)), "")
    if fault:
        return {"outcome": "failed", "reason": fault}
    speed: dict[str, Any] = {"figure": figure, "unit": unit, "cards": _names(ctx), "links": None}
    if len(ctx.gpus) > 1:
        speed["links"] = links_of(ctx.gpus)
    if look is not None:
        speed["seen"] = look.told()
    return {"outcome": "skipped", "reason": "measured, not judged", "speed": speed}


def _names(ctx: Context) -> list[str]:
    return [str(ctx.torch.cuda.get_device_name(index)) for index in ctx.gpus] if ctx.on_gpu else ["cpu"]


def _steps_of_a_round(step: Callable[[], Any], ctx: Context) -> int:
    """Step until the device is warm; return how many steps take a round's time."""
    count, start = 0, time.perf_counter()
    while True:
        step()
        synchronise(ctx)
        count += 1
        elapsed = time.perf_counter() - start
        if elapsed >= WARM_S and count > 1:
            return max(1, round(ROUND_S * count / elapsed))


def median_pace(pace: Pace, ctx: Context, look: Look | None = None) -> float:
    """Return units a second: the median of the rounds, which go on until nvidia-smi has looked."""
    steps = _steps_of_a_round(pace.step, ctx)
    rates: list[float] = []
    until = time.perf_counter() + LOOK_S
    while len(rates) < ROUNDS or (look is not None and look.busy and time.perf_counter() < until):
        start = time.perf_counter()
        for _ in range(steps):
            pace.step()
        synchronise(ctx)
        rates.append(steps * pace.amount / (time.perf_counter() - start))
    return sorted(rates)[len(rates) // 2]


class Look:
    """nvidia-smi, asked while the device works: clocks and links at rest tell nothing."""

    def __init__(self, gpus: Sequence[int]) -> None:
        self._cards = visible_cards()
        self._gpu = gpus[0]
        self._asked = self._ask("--query-gpu=" + ",".join(SHOWN))
        self._others = self._ask("--query-compute-apps=gpu_uuid,pid,process_name")

    def _ask(self, query: str) -> subprocess.Popen[bytes] | None:
        if self._gpu >= len(self._cards):
            return None
        command = ["nvidia-smi", query, "--format=csv,noheader,nounits", "--id=" + self._cards[self._gpu][1]]
        try:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except OSError:
            return None

    @property
    def busy(self) -> bool:
        """True while it has not answered."""
        return any(one is not None and one.poll() is None for one in (self._asked, self._others))

    def told(self) -> dict[str, str]:
        """Return what it showed, by its own names of fields; `others`: who else computes on the card."""
        rows = self._rows(self._asked)
        seen = dict(zip(SHOWN, rows[0])) if rows and len(rows[0]) == len(SHOWN) else {}  # noqa: B905 (3.8)
        programs = [row for row in self._rows(self._others) if len(row) == 3]
        mine = {str(os.getpid())}
        others = [row for row in programs if row[1] not in mine]
        if others and len(others) < len(programs):  # one is us: these are the numbers of our own house
            seen["others"] = ", ".join(f"PID {row[1]} ({os.path.basename(row[2])})" for row in others[:3])
        return {name: text for name, text in seen.items() if text and "N/A" not in text}

    def _rows(self, asked: subprocess.Popen[bytes] | None) -> list[list[str]]:
        if asked is None:
            return []
        try:
            text = asked.communicate(timeout=LOOK_S)[0].decode("utf-8", "replace")
        except subprocess.TimeoutExpired:
            asked.kill()
            asked.communicate()
            return []
        return (
            [[part.strip() for part in line.split(",")] for line in text.splitlines()]
            if not asked.returncode
            else []
        )


def links_of(gpus: Sequence[int]) -> int | None:
    """Return the fewest NVLinks of a card to the others, by nvidia-smi's table; None where it tells none."""
    try:
        done = subprocess.run(
            ["nvidia-smi", "topo", "-m"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, timeout=10,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    cards = visible_cards()
    if any(gpu >= len(cards) for gpu in gpus):
        return None
    return parse_links(done.stdout.decode("utf-8", "replace"), [cards[gpu][0] for gpu in gpus])


def parse_links(table: str, numbers: Sequence[str]) -> int | None:
    """Return the fewest NVLinks of a card to the others of `numbers`: `NV18` are 18, any other path none."""
    rows = {cells[0]: cells[1:] for line in table.splitlines() if len(cells := line.split()) > 1}
    totals = []
    for number in numbers:
        paths = []
        for other in numbers:
            cells = rows.get("GPU" + number, [])
            if other != number and int(other) >= len(cells):
                return None
            paths += [cells[int(other)]] if other != number else []
        linked = [int(path[2:]) for path in paths if path.startswith("NV") and path[2:].isdigit()]
        totals.append(sum(linked) if len(linked) == len(paths) else 0)
    return min(totals) if totals else None
