"""The parts of a peak against the card: a bar of blocks for a terminal, the same as inline SVG for HTML."""

from __future__ import annotations

from html import escape

from envdoctor.memory.curves import Curve
from envdoctor.memory.run import Component, Prediction

GIB = 1 << 30
WIDTH = 60
_BLOCKS = "█▓▒░▚▞▤▥▦"
_COLOURS = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#a463f2", "#97bbf5", "#9c6b4e", "#9498a0")


def gib(size: int) -> str:
    """Return bytes as GiB with two digits."""
    return f"{size / GIB:.2f} GiB"


def chart_parts(prediction: Prediction) -> tuple[Component, ...]:
    """The parts of all that must fit on the card: the peak's, what the allocator may hold, the context."""
    held = prediction.peak_reserved_bytes - prediction.peak_allocated_bytes
    told = prediction.outside
    outside = prediction.device_bytes - prediction.peak_reserved_bytes - sum(part.bytes for part in told)
    extra = (Component("held by the allocator", held), *told, Component("CUDA context", outside))
    return (*prediction.components, *(part for part in extra if part.bytes > 0))


def draw_bar(prediction: Prediction, gpu_bytes: int | None) -> str:
    """Return a bar of the parts, the card's end marked, and a line for each part."""
    parts = chart_parts(prediction)
    scale = max(prediction.device_bytes, gpu_bytes or 0)
    cells, drawn, done = "", 0, 0
    for index, part in enumerate(parts):
        done += part.bytes
        until = round(WIDTH * done / scale)
        cells += _BLOCKS[index % len(_BLOCKS)] * (until - drawn)
        drawn = until
    cells = cells.ljust(WIDTH, "·")
    if gpu_bytes and gpu_bytes < scale:
        end = min(WIDTH - 1, round(WIDTH * gpu_bytes / scale))
        cells = cells[:end] + "|" + cells[end + 1 :]
    lines = [cells]
    width = max(len(part.name) for part in parts)
    for index, part in enumerate(parts):
        lines.append(f"  {_BLOCKS[index % len(_BLOCKS)]} {part.name:<{width}} {gib(part.bytes):>12}")
    return "\n".join(lines)


def draw_svg(prediction: Prediction, gpu_bytes: int | None) -> str:
    """Return the bar as inline SVG, without script, style sheet or link."""
    parts = chart_parts(prediction)
    scale = max(prediction.device_bytes, gpu_bytes or 0)
    shapes, left = [], 0.0
    for index, part in enumerate(parts):
        width = 760 * part.bytes / scale
        title = escape(f"{part.name}: {gib(part.bytes)}")
        colour = _COLOURS[index % len(_COLOURS)]
        shapes.append(
            f'<rect x="{left:.1f}" y="10" width="{width:.1f}" height="40" fill="{colour}">'
            f"<title>{title}</title></rect>"
        )
        row = 80 + 20 * index
        shapes.append(f'<rect x="0" y="{row - 11}" width="12" height="12" fill="{colour}"/>')
        shapes.append(f'<text x="18" y="{row}" font-size="13">{title}</text>')
        left += width
    if gpu_bytes:
        x = 760 * gpu_bytes / scale
        shapes.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="2" y2="58" stroke="black" stroke-width="2"/>')
    height = 80 + 20 * len(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 780 {height}" role="img" '
        f'font-family="sans-serif" aria-label="Peak memory by part">' + "".join(shapes) + "</svg>"
    )


def list_curve(curve: Curve, gpu_bytes: int | None) -> str:
    """Return one line: what the device holds at each setting, with a mark where the card is too small."""
    cells = [
        f"{setting}: {size / GIB:.2f}{' (too much)' if gpu_bytes is not None and size > gpu_bytes else ''}"
        for setting, size in curve.points
    ]
    return f"By {curve.label}, GiB  {', '.join(cells)}"


def draw_curve(curve: Curve, gpu_bytes: int | None) -> str:
    """Return device memory against a setting as inline SVG, the card as a dashed line."""
    points, label = curve.points, escape(f"{curve.label} (GiB on the device)")
    top = max(max(size for _, size in points), gpu_bytes or 0)
    right = max(setting for setting, _ in points)
    path = " ".join(f"{40 + 700 * s / right:.1f},{180 - 140 * b / top:.1f}" for s, b in points)
    marks = "".join(
        f'<text x="{40 + 700 * s / right:.1f}" y="198" font-size="11" text-anchor="middle">{s}</text>'
        f'<text x="{40 + 700 * s / right:.1f}" y="{172 - 140 * b / top:.1f}" font-size="11" '
        f'text-anchor="middle">{b / GIB:.1f}</text>'
        for s, b in points
    )
    card = ""
    if gpu_bytes:
        y = 180 - 140 * gpu_bytes / top
        card = f'<line x1="40" x2="740" y1="{y:.1f}" y2="{y:.1f}" stroke="black" stroke-dasharray="4"/>'
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 780 205" role="img" font-family="sans-serif" '
        f'aria-label="Memory against {label}"><polyline points="{path}" fill="none" '
        f'stroke="#4269d0" stroke-width="2"/>{marks}{card}'
        f'<text x="40" y="14" font-size="13">{label}</text></svg>'
    )
