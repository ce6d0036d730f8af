"""CUDA graphs."""

from __future__ import annotations

from typing import Any

from . import plain
from .context import Context
from .registry import op
from .trial import Trial


@op("cuda.graph", tolerance=1e-2, cpu=False)
def cuda_graph(ctx: Context) -> Trial:
    """A product captured in a CUDA graph and replayed on inputs that came later."""
    torch = ctx.torch
    weight, data = ctx.randn(128, 96), ctx.randn(64, 128)
    static = torch.zeros_like(data)

    def call() -> Any:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            (static @ weight).relu()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        # Without a stream torch takes the one it made at the first capture of the process, on whichever
        # card was current then: on another card nothing would be captured.
        with torch.cuda.graph(graph, stream=stream):
            output = (static @ weight).relu()
        static.copy_(data)
        graph.replay()
        return output.clone()

    return Trial(
        call,
        lambda: (ctx.exact(data) @ ctx.exact(weight)).relu(),
        lambda numpy: numpy.maximum(
            plain.product(numpy, ctx.plain(numpy, data), ctx.plain(numpy, weight)), 0
        ),
    )
