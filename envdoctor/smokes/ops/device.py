"""The device itself: is it there, and do bytes come back as they went."""

from __future__ import annotations

from .context import Context
from .registry import op
from .trial import Trial


@op("device.copy", tolerance=0.0)
def device_copy(ctx: Context) -> Trial:
    """Bytes to the device and back, through a kernel that copies them there."""
    torch = ctx.torch
    data = torch.randint(0, 256, (1 << 16,), generator=ctx.generator, dtype=torch.uint8)
    return Trial(
        lambda: data.to(ctx.device).clone().to("cpu"),
        lambda: data.to(torch.float64),
        lambda np: ctx.plain(np, data),
    )
