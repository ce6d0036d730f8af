"""A prediction as a person reads it: text with a bar, or a page with the same bar as SVG."""

from __future__ import annotations

from html import escape

from envdoctor.memory.chart import draw_bar, draw_curve, draw_svg, gib, list_curve
from envdoctor.memory.curves import Curve
from envdoctor.memory.run import Prediction


def verdict(prediction: Prediction, gpu_bytes: int | None) -> str:
    """One sentence: whether it fits, and by how much."""
    if gpu_bytes is None:
        return "No card was named (--gpu), so whether it fits is not said."
    if prediction.refused:
        return f"It does not run on the card of {gib(gpu_bytes)}: {prediction.refused}."
    left = gpu_bytes - prediction.device_bytes
    if left >= 0:
        return f"It fits the card of {gib(gpu_bytes)} with {gib(left)} to spare."
    return f"It does not fit the card of {gib(gpu_bytes)}: {gib(-left)} too much."


def _lines(prediction: Prediction, gpu_bytes: int | None) -> list[str]:
    lines = [
        f"Peak allocated  {gib(prediction.peak_allocated_bytes):>12}  in the {prediction.phase} phase "
        f"({prediction.method})",
        f"Peak reserved   {gib(prediction.peak_reserved_bytes):>12}  at most",
        f"On the device   {gib(prediction.device_bytes):>12}  at most",
        verdict(prediction, gpu_bytes),
    ]
    if prediction.uncertain:
        lines.append(f"Uncertain: {prediction.uncertain}.")
    return lines


def describe_text(
    prediction: Prediction, gpu_bytes: int | None, title: str, curves: tuple[Curve, ...] = ()
) -> str:
    """Return the prediction as plain text."""
    body = [title, "", draw_bar(prediction, gpu_bytes), "", *_lines(prediction, gpu_bytes)]
    if curves:
        body += ["", *(list_curve(curve, gpu_bytes) for curve in curves)]
    return "\n".join([*body, "", *(f"Assumed: {note}" for note in prediction.assumptions)])


def describe_html(
    prediction: Prediction, gpu_bytes: int | None, title: str, curves: tuple[Curve, ...] = ()
) -> str:
    """Return the prediction as one self-contained page."""
    lines = "".join(f"<li>{escape(line)}</li>" for line in _lines(prediction, gpu_bytes))
    notes = "".join(f"<li>{escape(note)}</li>" for note in prediction.assumptions)
    drawn = "".join(draw_curve(curve, gpu_bytes) for curve in curves)
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<title>{escape(title)}</title></head><body style="font-family:sans-serif;max-width:50rem">'
        f"<h1>{escape(title)}</h1>{draw_svg(prediction, gpu_bytes)}<ul>{lines}</ul>{drawn}"
        f"<h2>Assumed</h2><ul>{notes}</ul></body></html>"
    )
