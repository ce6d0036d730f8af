"""A third party's ops, each of which does one thing wrong (or, to stand among them, right)."""

import ctypes
import os
import signal
import subprocess
import sys
import time


def register(op):
    def fault(name, call, **options):
        def function(ctx):
            """A fault."""
            return _Trial(lambda: call(ctx), lambda: ctx.torch.tensor([1.0, 2.0], dtype=ctx.torch.float64))

        op(f"fault.{name}", tolerance=0.01, lane="fault", quick=False, **options)(function)

    for name, call in CALLS.items():
        fault(name, call)
    op("fault.zeroed", tolerance=0.01, lane="fault", quick=False)(_zeroed)
    op("fault.own_judge", tolerance=0.01, lane="fault", quick=False)(_own_judge)
    for name, verify in {
        "speed": "",
        "speed_of_nothing": "7 of 8 values that were looked at did not arrive",
    }.items():
        op(f"fault.{name}", tolerance=0.0, lane="fault", quick=False, unit="GB/s")(_pace(verify))
    fault("missing_library", _right, needs=("envdoctor_absent_library",))
    fault("broken_library", _right, needs=("envdoctor_broken_library",))
    for name, call in GPU_CALLS.items():
        fault(name, call, cpu=False)


class _Trial:
    def __init__(self, call, reference):
        self.call = call
        self.reference = reference


def _pace(fault):
    """A speed: a step of a millisecond that says to move 2 GB, and what is wrong with what it moved."""

    def function(ctx):
        """A speed."""
        pace = _Trial(None, None)
        pace.step, pace.amount, pace.verify = (lambda: time.sleep(0.001)), 2.0, (lambda: fault)
        pace.finished, pace.way_back = None, None
        return pace

    return function


def _zeroed(ctx):
    """Inputs that were never drawn: the result is right, and proves nothing."""
    return _Trial(lambda: ctx.torch.tensor([0.0, 0.0]), lambda: ctx.torch.tensor([0.0, 0.0]))


def _own_judge(ctx):
    """A library that is wrong in float64 too, held against itself; a second one knows better."""
    trial = _Trial(lambda: ctx.torch.tensor([1.0, 3.0]), lambda: ctx.torch.tensor([1.0, 3.0]))
    trial.plain = lambda numpy: numpy.array([1.0, 2.0])
    return trial


def _right(ctx):
    return ctx.torch.tensor([1.0, 2.0]).to(ctx.device)


def _wrong(ctx):
    return ctx.torch.tensor([1.0, 2.05]).to(ctx.device)


def _nan(ctx):
    return ctx.torch.tensor([1.0, float("nan")]).to(ctx.device)


def _wrong_shape(ctx):
    return ctx.torch.tensor([1.0]).to(ctx.device)


def _raises(ctx):
    raise RuntimeError("no kernel image is available for execution on the device")


def _segv(ctx):
    ctypes.string_at(0)


def _abort(ctx):
    print("terminate called after throwing an instance of 'c10::Error'", file=sys.stderr, flush=True)
    os.abort()


def _exit(ctx):
    os._exit(3)


def _exit_zero(ctx):
    os._exit(0)


def _loop(ctx):
    while True:
        time.sleep(0.001)


def _spin(ctx):
    while True:
        pass


def _kill(ctx):
    os.kill(os.getpid(), signal.SIGKILL)


def _pipe(ctx):
    os.closerange(3, 256)
    time.sleep(3600)


def _rubbish(ctx):
    for number in range(10, 20):
        try:
            os.write(number, b"rubbish\n")
        except OSError:
            continue
    return _right(ctx)


def _chatter(ctx):
    print('{"event": "result", "outcome": "failed"}', flush=True)
    os.system("echo chatter; echo chatter >&2")
    return _right(ctx)


def _flood(ctx):
    sys.stderr.write("flood\n" * 2_000_000)
    return _right(ctx)


def _daemon(ctx):
    subprocess.Popen(["sleep", "3600"], start_new_session=True)
    return _right(ctx)


def _blind_norm(ctx):
    """Also patches what would judge it."""
    type(ctx.torch.tensor([1.0])).norm = lambda self: 0.0
    return _wrong(ctx)


def _poison(ctx):
    """Right itself, but whoever comes after it in the same process fails."""
    os.environ["ENVDOCTOR_TEST_POISONED"] = "1"
    return _right(ctx)


def _victim(ctx):
    return _wrong(ctx) if os.environ.get("ENVDOCTOR_TEST_POISONED") else _right(ctx)


def _unwritten(ctx):
    """Hands out the memory of its own last output without writing it: right once, stale after."""
    if not hasattr(_unwritten, "kept"):
        _unwritten.kept = _right(ctx)
    return _unwritten.kept


def _gpu_loop(ctx):
    ctx.torch.cuda._sleep(10**15)
    return _right(ctx)


def _gpu_assert(ctx):
    torch = ctx.torch
    torch.zeros(4, device=ctx.device)[torch.tensor([99], device=ctx.device)]
    return _right(ctx)


def _gpu_oom(ctx):
    ctx.torch.empty(1 << 50, dtype=ctx.torch.uint8, device=ctx.device)
    return _right(ctx)


CALLS = {
    "none": _right, "segv": _segv, "abort": _abort, "exit": _exit, "exit_zero": _exit_zero, "loop": _loop,
    "spin": _spin, "kill": _kill, "pipe": _pipe, "rubbish": _rubbish, "raises": _raises, "wrong": _wrong,
    "nan": _nan, "shape": _wrong_shape, "chatter": _chatter, "flood": _flood, "daemon": _daemon,
    "poison": _poison, "victim": _victim, "unwritten": _unwritten, "blind_norm": _blind_norm, "last": _right,
}  # fmt: skip
GPU_CALLS = {"gpu_loop": _gpu_loop, "gpu_assert": _gpu_assert, "gpu_oom": _gpu_oom, "gpu_after": _right}
