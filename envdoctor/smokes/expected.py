"""Measured speeds held against what such cards reach: slow or not, by how much, and what explains it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from envdoctor.facts import Speed
from envdoctor.matrix import Matrix, tables
from envdoctor.patterns import glob_matches
from envdoctor.smokes.verdicts import Outcome, SmokeReport, SmokeResult

_OUTCOMES: Mapping[str, Outcome] = {"pass": "passed", "slow": "failed", "unknown": "skipped"}
_LANE_GB_S = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
_BRAKES = {
    0x4: "its power limit", 0x8: "a hardware slowdown", 0x20: "heat", 0x40: "heat, by the hardware",
    0x80: "an external power brake",
}  # fmt: skip
_NEAR = 0.95


def judge_report(report: SmokeReport, matrix: Matrix) -> SmokeReport:
    """Return the report with its speeds judged; one in which nothing could be judged proves nothing."""
    results = tuple(_judged(result, matrix) for result in report.results)
    unknown = [one for one in results if one.speed is not None and one.speed.verdict == "unknown"]
    if unknown and not report.unprovable and not any(one.outcome == "passed" for one in results):
        why = f"measured, and nothing to hold it against: {unknown[0].reason}"
        return replace(report, results=results, unprovable=why)
    return replace(report, results=results)


def _judged(result: SmokeResult, matrix: Matrix) -> SmokeResult:
    if result.speed is None or result.outcome != "skipped":
        return result
    speed, reason = judge_speed(result.op, result.speed, matrix)
    return replace(result, outcome=_OUTCOMES[speed.verdict], reason=reason, speed=speed)


def judge_speed(op: str, speed: Speed, matrix: Matrix) -> tuple[Speed, str | None]:
    """Return a speed with its verdict, and the reason: None for one that passes."""
    measured = f"{told(speed.figure)} {speed.unit}"
    name = op.partition("[")[0].partition("@")[0]
    card = _card_row(speed, matrix)
    share = _share_row(name, speed, matrix)
    if card is None or share is None:
        what = " and ".join(sorted(set(speed.cards))) or "a card without a name"
        return speed, f"{measured}; no expected figure for {what}"
    peak = _peak(card, share, speed)
    if peak is None:
        return speed, f"{measured}; no expected figure: {_why_no_peak(speed)}"
    expected, least = peak * share.share, peak * share.share * (1 - share.tolerance)
    rows = (card.id, share.id)
    if speed.figure >= least:
        return replace(speed, verdict="pass", expected=expected, least=least, rows=rows), None
    causes = tuple(_causes(card, share, speed)) or (share.remedy,)
    reason = (
        f"slow: {measured} where {told(expected)} is expected, at least {told(least)}; {'; '.join(causes)}"
    )
    return replace(speed, verdict="slow", expected=expected, least=least, rows=rows, causes=causes), reason


def told(figure: float) -> str:
    """Return a figure with three digits that count."""
    return f"{figure:.3g}" if abs(figure) < 100 else f"{figure:.0f}"


def _card_row(speed: Speed, matrix: Matrix) -> tables.CardSpeedRow | None:
    """Return what the book says of the card, when all that took part are of one kind."""
    if len(set(speed.cards)) != 1:
        return None
    return next((r for r in matrix.rows(tables.CardSpeedRow) if _is(speed.cards[0], r.cards)), None)


def _share_row(op: str, speed: Speed, matrix: Matrix) -> tables.SpeedShareRow | None:
    rows = (row for row in matrix.rows(tables.SpeedShareRow) if glob_matches(op, row.ops))
    return next((row for row in rows if speed.cards and _is(speed.cards[0], row.cards)), None)


def _is(card: str, names: tuple[str, ...]) -> bool:
    return any(glob_matches(card, name) for name in names)


def _peak(card: tables.CardSpeedRow, share: tables.SpeedShareRow, speed: Speed) -> float | None:
    """Return the book's figure; between cards, of as many links as they have."""
    if share.of == "nvlink":
        links = min(speed.links or 0, card.nvlinks or 0)
        return links * card.nvlink if links and card.nvlink else None
    return {"pcie": card.pcie, "memory": card.memory, "matmul": card.matmul}[share.of]


def _why_no_peak(speed: Speed) -> str:
    return "how the cards are linked is not told" if speed.links is None else "no NVLink joins these cards"


def _causes(card: tables.CardSpeedRow, share: tables.SpeedShareRow, speed: Speed) -> Iterator[str]:
    """Yield what nvidia-smi showed meanwhile that would explain it."""
    seen = speed.seen
    if share.of == "pcie" and (link := _link(seen)) and link[0] < _NEAR * card.pcie:
        yield f"its link runs at PCIe {link[1]}, {told(link[0])} of {told(card.pcie)} GB/s"
    if share.of in ("matmul", "memory"):
        yield from _clock("SM clock", seen, "clocks.sm", "clocks.max.sm")
        yield from _clock("memory clock", seen, "clocks.mem", "clocks.max.mem")
        brakes = [name for bit, name in _BRAKES.items() if _bits(seen) & bit]
        if brakes:
            yield f"it is held back by {' and '.join(brakes)} at {seen.get('temperature.gpu', '?')} °C"
    if others := seen.get("others"):
        yield f"others compute there: {others}"


def _link(seen: Mapping[str, str]) -> tuple[float, str] | None:
    """Return the rate of the link as it ran, and its words: `3.0 x 8`."""
    generation, width = (
        _number(seen.get(name)) for name in ("pcie.link.gen.current", "pcie.link.width.current")
    )
    lane = _LANE_GB_S.get(int(generation or 0))
    return (lane * width, f"{generation:.0f}.0 x {width:.0f}") if lane and width else None


def _clock(name: str, seen: Mapping[str, str], current: str, most: str) -> Iterator[str]:
    now, top = _number(seen.get(current)), _number(seen.get(most))
    if now and top and now < 0.8 * top:
        yield f"{name} {now:.0f} of {top:.0f} MHz"


def _bits(seen: Mapping[str, str]) -> int:
    text = seen.get("clocks_throttle_reasons.active", "0")
    try:
        return int(text, 16)
    except ValueError:
        return 0


def _number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:
        return None
