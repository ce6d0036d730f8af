"""The edge of memory."""

from __future__ import annotations

from typing import Any

from .context import Context
from .registry import op
from .trial import Trial


@op("memory.oom", tolerance=1e-2, cpu=False, quick=False, last=True)
def memory_oom(ctx: Context) -> Trial:
    """Take most of what is free, ask for as much again, be refused cleanly, and compute after it."""
    torch = ctx.torch
    left, right = ctx.randn(64, 128), ctx.randn(128, 96)

    def call() -> Any:
        free, _ = torch.cuda.mem_get_info(ctx.device)
        held = torch.empty(int(free * 0.9), dtype=torch.uint8, device=ctx.device)
        try:
            torch.empty(int(free * 0.9), dtype=torch.uint8, device=ctx.device)
        except RuntimeError as error:
            if "out of memory" not in str(error):
                raise
        else:
            raise RuntimeError("twice the free memory was given out")
        finally:
            del held
            torch.cuda.empty_cache()
        return left @ right

    return Trial(call, lambda: ctx.exact(left) @ ctx.exact(right))
