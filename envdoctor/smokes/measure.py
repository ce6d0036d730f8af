"""One op, run and judged, in the examined interpreter: error against the reference, first and repeat time.

Runs under any Python from 3.8 with any torch; nothing here is imported by the parent.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .holding import is_out_of_memory, who_holds
from .judging import Numbers, numbers_of, off
from .pacing import measure_pace, synchronise

if TYPE_CHECKING:
    from .ops.context import Context
    from .ops.registry import Op

EXACT = 1e-7, 100.0
CAUGHT = (Exception, SystemExit, KeyboardInterrupt)
"""What an op may raise without ending its worker, so that it is told by its own name."""
MUTATE = "ENVDOCTOR_SMOKE_MUTATE"  # "OP:N" or "*:N" spoils the N-th output, to prove that it is caught


def missing_need(needs: Iterable[str]) -> str:
    """Return the first of the modules that is not installed, or an empty text."""
    for name in needs:
        try:
            found = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            found = None
        if found is None:
            return name
    return ""


def inapplicable(op: Op, ctx: Context) -> str:
    """Return why the op does not apply to this device, or an empty text."""
    if not ctx.on_gpu:
        return "" if op.cpu else "needs a CUDA GPU"
    if op.gpus == "pair" and len(ctx.gpus) < 2:
        return "needs two GPUs"
    if ctx.sm < op.min_sm:
        return f"needs compute capability {op.min_sm / 10:.1f}; this card has {ctx.sm / 10:.1f}"
    return ""


def run_op(op: Op, ctx: Context, skip: type[Exception], say: Callable[[str], None]) -> dict[str, Any]:
    """Run the op in its phases, each told through `say`, and return the verdict in JSON terms."""
    reason = inapplicable(op, ctx)
    missing = "" if reason else missing_need(op.needs)
    if reason or missing:
        return _verdict("skipped", reason or f"{missing} is not installed")
    try:
        _open(ctx, say)
    except CAUGHT as error:
        return _raised("opening the card", error, ctx)
    for name in op.needs:
        say(f"importing {name}")
        try:
            importlib.import_module(name)
        except CAUGHT as error:
            return _verdict("failed", f"{name} does not import: {describe(error)}", unimportable=name)
    phase = ["preparing"]

    def tell(name: str) -> None:
        phase[0] = name
        say(name)

    try:
        return _measure(op, ctx, tell)
    except skip as error:
        return _verdict("skipped", str(error))
    except CAUGHT as error:
        return _raised(phase[0], error, ctx)


def _open(ctx: Context, say: Callable[[str], None]) -> None:
    """Make the card ours, which takes memory of it: where it is full, not even that is to be had."""
    if ctx.on_gpu:
        say("opening the card")
        ctx.torch.cuda.set_device(ctx.gpus[0])


def _raised(phase: str, error: BaseException, ctx: Context) -> dict[str, Any]:
    """Return the verdict of an error: who holds the memory that was refused, else the error itself."""
    full = is_out_of_memory(error) and ctx.on_gpu and who_holds(ctx.gpus)
    return _verdict("failed", full or f"{phase}: {describe(error)} (seed {ctx.seed})")


def _measure(op: Op, ctx: Context, say: Callable[[str], None]) -> dict[str, Any]:
    """Prepare, compute the reference, call once and again, and compare each result."""
    say("preparing")
    trial = op.function(ctx)
    if op.unit:
        return measure_pace(trial, op.unit, ctx, say)
    say("computing the reference")
    expected = [ctx.exact(tensor) for tensor in _flat(trial.reference())]
    truth, fault, told = _truth(trial, expected, ctx)
    if fault:
        return _verdict("failed", f"{fault} (seed {ctx.seed})")
    limits = op.tolerance, op.spread
    _poison_free_memory(ctx, expected)
    say("first call")
    first_ms, outputs = _timed(trial.call, ctx)
    worst, fault = _compare(_mutated(op, ctx, outputs, expected), truth, limits, ctx)
    repeats: list[float] = []
    while not fault and len(repeats) < op.repeats:
        say("repeated call")
        _poison(outputs, ctx)
        elapsed, outputs = _timed(trial.call, ctx)
        repeats.append(elapsed)
        error, fault = _compare(_mutated(op, ctx, outputs, expected), truth, limits, ctx)
        worst = max(worst, error)
    figures = {
        "max_rel_error": worst if worst == worst and worst != float("inf") else None,
        "first_ms": first_ms,
    }
    if fault:
        return _verdict("failed", f"{fault} (seed {ctx.seed})", **figures)
    return _verdict("passed", told, repeat_ms=sorted(repeats)[len(repeats) // 2], **figures)


def _verdict(outcome: str, reason: Any, **more: Any) -> dict[str, Any]:
    return dict(outcome=outcome, reason=reason, **more)


def _flat(outputs: Any) -> list[Any]:
    return list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]


def _timed(call: Callable[[], Any], ctx: Context) -> tuple[float, list[Any]]:
    """Return the milliseconds of a call until the device is done, and its outputs."""
    synchronise(ctx)
    start = time.perf_counter()
    outputs = _flat(call())
    synchronise(ctx)
    return (time.perf_counter() - start) * 1000, outputs


def _truth(trial: Any, expected: list[Any], ctx: Context) -> tuple[list[Numbers], str, str | None]:
    """Return what the outputs must be, what is wrong with it, and what is to be told of a pass.

    NumPy's own reference decides where the op has one and NumPy is there; torch's must then agree with it,
    for on the CPU torch would else be held against itself. A reference without content proves nothing.
    """
    told = [numbers_of(tensor) for tensor in expected]
    numpy = _numpy() if getattr(trial, "plain", None) is not None else None
    truth = told
    if numpy is not None:
        truth = [
            Numbers(tuple(one.shape), one.ravel().tolist())
            for one in map(numpy.asarray, _flat(trial.plain(numpy)))
        ]
        for index, (mine, theirs) in enumerate(zip(told, truth)):  # noqa: B905 (Python 3.8)
            fault = off(mine, theirs, EXACT, index)[1]
            if fault or len(told) != len(truth):
                fault = fault or "it lacks outputs"
                return truth, "torch's own reference in float64 is wrong: " + fault, None
    for index, numbers in enumerate(truth):
        if len(numbers.values) > 1 and len(set(numbers.values)) == 1:
            word = f"{numbers.values[0]:g}" if numbers.values[0] else "zero"
            return truth, f"reference {index} is {word} throughout: its inputs were never drawn", None
    alone = truth is told and getattr(trial, "plain", None) is not None and not ctx.on_gpu
    return truth, "", "torch was its own judge: no NumPy imports there" if alone else None


def _numpy() -> Any:
    try:
        return importlib.import_module("numpy")
    except Exception:
        return None


def _compare(
    outputs: list[Any], truth: list[Numbers], limits: tuple[float, float], ctx: Context
) -> tuple[float, str]:
    """Return the largest relative error and what is wrong, an empty text when nothing is."""
    if len(outputs) != len(truth):
        return float("nan"), f"{len(outputs)} outputs where {len(truth)} belong"
    worst = 0.0
    for index, (output, reference) in enumerate(zip(outputs, truth)):  # noqa: B905 (Python 3.8)
        error, fault = off(numbers_of(ctx.exact(output)), reference, limits, index)
        if fault:
            return error, fault
        worst = max(worst, error)
    return worst, ""


def _poison_free_memory(ctx: Context, expected: list[Any]) -> None:
    """Leave ones in every bit (NaN in each float format) in the memory that outputs will likely get."""
    torch = ctx.torch
    held = [
        torch.full((max(1, tensor.numel()) * width,), 255, dtype=torch.uint8, device=ctx.device)
        for tensor in expected
        for width in (1, 2, 4, 8)
    ]
    synchronise(ctx)
    del held


def _poison(outputs: list[Any], ctx: Context) -> None:
    """Overwrite the outputs of the last call, so that a kernel that writes nothing cannot pass by them."""
    for output in outputs:
        if output.is_floating_point():
            output.detach().fill_(float("nan"))
        else:
            output.detach().fill_(77)
    synchronise(ctx)


def _mutated(op: Op, ctx: Context, outputs: list[Any], expected: list[Any]) -> list[Any]:
    """Return the outputs, one value spoiled by little more than the tolerance where a test asks for it."""
    name, _, index = os.environ.get(MUTATE, "").partition(":")
    if name not in (op.name, "*") or int(index or 0) >= len(outputs):
        return outputs
    position = int(index or 0)
    spoiled = ctx.exact(outputs[position]).clone(memory_format=ctx.torch.contiguous_format)
    spoiled.view(-1)[0] += 2.5 * op.tolerance * float(expected[position].norm()) or 1.0
    return [*outputs[:position], spoiled, *outputs[position + 1 :]]


def describe(error: BaseException) -> str:
    """Return the error's type and the first lines of its text, on one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:400]}" if text else type(error).__name__
