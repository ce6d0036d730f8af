"""A prediction as a document: the parts of the peak against the card, and how it grows."""

from __future__ import annotations

from itertools import accumulate

from envdoctor.facts.quantities import GIB
from envdoctor.memory.curves import Curve
from envdoctor.memory.run import Component, Prediction
from envdoctor.report import PLAIN, Look, Reported, told
from envdoctor.report.document import (
    Bar,
    Bars,
    Block,
    Document,
    Row,
    Rows,
    Run,
    Section,
    Span,
    Table,
    Text,
    Tone,
)

Ways = tuple[tuple[str, int], ...]
"""Options that make a run fit, each with the bytes that it then takes of the device."""


def render(
    prediction: Prediction,
    gpu_bytes: int | None,
    format: Reported,
    look: Look = PLAIN,
    *,
    title: str = "",
    curves: tuple[Curve, ...] = (),
    ways: Ways = (),
) -> str:
    """Return a prediction in one format."""
    return told(
        format,
        look,
        lambda: document(prediction, gpu_bytes, title, curves, ways),
        lambda: prediction.to_json(gpu_bytes),
    )


def document(
    prediction: Prediction,
    gpu_bytes: int | None,
    title: str,
    curves: tuple[Curve, ...] = (),
    ways: Ways = (),
) -> Document:
    """Return the verdict, the peak, its parts as bars, ways out, its growth, and what was assumed."""
    fits = prediction.fits(gpu_bytes)
    blocks: list[Block] = [_peaks(prediction), peak_bars(prediction, gpu_bytes)]
    if prediction.uncertain:
        blocks.insert(0, Text(Span(f"Uncertain: {prediction.uncertain}.", "warning")))
    if ways:
        each = tuple(Row(option, f"about {gib(took)}") for option, took in ways)
        blocks.append(Section("Each of these alone would make it fit", (Rows(each),)))
    blocks += [_growth(curve, gpu_bytes) for curve in curves]
    blocks.append(Section("Assumed", (Rows(tuple(Row("", note) for note in prediction.assumptions)),)))
    tone: Tone = "" if fits is None else "ok" if fits else "error"
    return Document(f"{title}: {verdict(prediction, gpu_bytes)}", tone, tuple(blocks))


def gib(size: int) -> str:
    """Return bytes as GiB with two digits."""
    return f"{size / GIB:.2f} GiB"


def verdict(prediction: Prediction, gpu_bytes: int | None) -> str:
    """Return whether it fits, and by how much."""
    if gpu_bytes is None:
        return "no card was named (--gpu), so whether it fits is not said"
    if prediction.refused:
        return f"it does not run on the card of {gib(gpu_bytes)}: {prediction.refused}"
    left = gpu_bytes - prediction.device_bytes
    if left >= 0:
        return f"it fits the card of {gib(gpu_bytes)} with {gib(left)} to spare"
    return f"it does not fit the card of {gib(gpu_bytes)}: {gib(-left)} too much"


def _peaks(prediction: Prediction) -> Table:
    where = f"expected, in the {prediction.phase} phase ({prediction.method})"
    rows = (
        ("allocated", gib(prediction.peak_allocated_bytes), where),
        ("reserved", gib(prediction.peak_reserved_bytes), _reserved_at_most(prediction)),
        ("on the device", gib(prediction.device_bytes), "at most"),
    )
    return Table(("peak", "", ""), rows, (1,))


def _reserved_at_most(prediction: Prediction) -> str:
    idle = prediction.idle_bytes
    return f"at most, {gib(idle)} of which torch gives back when the card is full" if idle else "at most"


def peak_bars(prediction: Prediction, gpu_bytes: int | None) -> Bars:
    """Return a bar for each part of what must fit on the card, each beginning where the one before ends."""
    parts = chart_parts(prediction)
    ends = list(accumulate(part.bytes for part in parts))
    bars = tuple(
        Bar(part.name, (Run(end - part.bytes, end, "", f"{part.name}: {gib(part.bytes)}"),), gib(part.bytes))
        for part, end in zip(parts, ends, strict=True)
    )
    return Bars(bars, max(prediction.device_bytes, gpu_bytes or 0), gpu_bytes)


def chart_parts(prediction: Prediction) -> tuple[Component, ...]:
    """Return the parts of all that must fit: the peak's, what the allocator may hold, the context."""
    needed = prediction.peak_reserved_bytes - prediction.idle_bytes
    held = needed - prediction.peak_allocated_bytes
    told = prediction.outside
    outside = prediction.device_bytes - needed - sum(part.bytes for part in told)
    extra = (Component("held by the allocator", held), *told, Component("CUDA context", outside))
    return (*prediction.components, *(part for part in extra if part.bytes > 0))


def _growth(curve: Curve, gpu_bytes: int | None) -> Section:
    """Return what the device holds at each setting; what is too much for the card stands out."""

    def bar(setting: int, size: int) -> Bar:
        too_much = gpu_bytes is not None and size > gpu_bytes
        told = f"{gib(size)}{': too much for the card' if too_much else ''}"
        return Bar(str(setting), (Run(0, size, "error" if too_much else "", told),), gib(size))

    length = max([gpu_bytes or 0, *(size for _, size in curve.points)])
    bars = tuple(bar(setting, size) for setting, size in curve.points)
    mark = "" if gpu_bytes is None or gpu_bytes == length else "; past the mark is too much for the card"
    return Section(f"On the device by {curve.label}, about{mark}", (Bars(bars, length, gpu_bytes),))
