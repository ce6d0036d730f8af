"""Faults planted into what smokes examine, one run each: is each named, and does none pass in silence?

    python benchmarks/smoke_faults.py --python PYTHON_WITH_TORCH [--device cpu|N] [--only GLOB] [--timeout S]

A fault is a function of this file that runs in the examined interpreter, at its start or once torch is there,
or variables, files and processes beside it. It is *silent* when an op that it spoils passes, and *unnamed*
when it is told in other words than it should be. Prints a line each; 1 when one is silent or unnamed.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib.abc
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PLUGINS = ROOT / "tests" / "smokes" / "plugins"
CHOSEN = "ENVDOCTOR_PLANTED_FAULT"
PRODUCTS = "matmul.bf16"
EVERYWHERE, CPU, GPU, PAIR = "everywhere", "cpu", "gpu", "pair"
HARMLESS = "passed"


class Fault(NamedTuple):
    """What is planted, which ops it spoils, and how they must be told."""

    name: str
    select: str
    outcome: str
    """`passed` for what must do no harm, `unavailable` and `skipped` for what proves nothing."""
    words: str
    function: Callable[..., object] | None = None
    at_start: bool = False
    """Before torch is imported, when Python starts."""
    where: str = EVERYWHERE
    variables: Mapping[str, str] = MappingProxyType({})
    files: Mapping[str, str] = MappingProxyType({})
    beside: Callable[[argparse.Namespace], Any] | None = None
    """Holds what stands beside the run, a context manager."""
    timeout_s: float | None = None
    needs: str = ""
    """A module that the examined interpreter must have."""


FAULTS: dict[str, Fault] = {}


def fault(name: str, select: str, outcome: str, words: str = "", **more: Any) -> Callable[[Any], Any]:
    """Plant the function below."""

    def planted(function: Any) -> Any:
        FAULTS[name] = Fault(name, select, outcome, words, function, **more)
        return function

    return planted


def plain(name: str, select: str, outcome: str, words: str = "", **more: Any) -> None:
    """Plant what needs no function: an op of the test plugins, variables, files."""
    FAULTS[name] = Fault(name, select, outcome, words, **more)


def plant(name: str) -> None:
    """Do it: called when the examined Python starts."""
    chosen = FAULTS[name]
    if chosen.function is None:
        return
    if chosen.at_start:
        chosen.function()
    else:
        sys.meta_path.insert(0, AfterTorch(chosen.function))


class AfterTorch(importlib.abc.MetaPathFinder):
    """Calls a function with torch as soon as it is imported."""

    def __init__(self, function: Callable[..., object]) -> None:
        self.function, self.busy = function, False

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """Return torch's spec, with our function at its end."""
        if name != "torch" or self.busy:
            return None
        self.busy = True
        spec = importlib.util.find_spec(name)
        self.busy = False
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: Any) -> None:
                execute(module)
                self.function(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def spoil(torch: Any, change: Callable[..., Any]) -> None:
    """Change each product of less than float64 on the examined device."""
    multiply = torch.Tensor.__matmul__

    def product(left: Any, right: Any) -> Any:
        out = multiply(left, right)
        return out if out.dtype == torch.float64 else change(out, left, right)

    torch.Tensor.__matmul__ = product


# --- wrong numbers ---

OFF = r"element \d+ of 61440 is off by|is off by"


@fault("one element of 61,440 off by half", PRODUCTS, "failed", r"element 777 of 61440 is off by")
def _(torch: Any) -> None:
    def change(out: Any, *_: Any) -> Any:
        out.view(-1)[777] = 24.0 + out.view(-1)[777] * 1.5
        return out

    spoil(torch, change)


@fault("one element is NaN", PRODUCTS, "failed", "1 of 61440 values are NaN or infinite")
def _(torch: Any) -> None:
    def change(out: Any, *_: Any) -> Any:
        out.view(-1)[0] = float("nan")
        return out

    spoil(torch, change)


@fault("one element is infinite", PRODUCTS, "failed", "1 of 61440 values are NaN or infinite")
def _(torch: Any) -> None:
    def change(out: Any, *_: Any) -> Any:
        out.view(-1)[-1] = float("inf")
        return out

    spoil(torch, change)


@fault("all NaN", PRODUCTS, "failed", "61440 of 61440 values are NaN")
def _(torch: Any) -> None:
    spoil(torch, lambda out, *_: out * float("nan"))


@fault("the last row is not computed", PRODUCTS, "failed", OFF)
def _(torch: Any) -> None:
    def change(out: Any, *_: Any) -> Any:
        out[-1] = 0
        return out

    spoil(torch, change)


@fault("rows are shifted by one", PRODUCTS, "failed", OFF)
def _(torch: Any) -> None:
    spoil(torch, lambda out, *_: out.roll(1, 0))


@fault("zeros", PRODUCTS, "failed", "is off by 1, tolerance")
def _(torch: Any) -> None:
    spoil(torch, lambda out, *_: out * 0)


@fault("the transposed product", PRODUCTS, "failed", r"has shape \[320, 192\], not \[192, 320\]")
def _(torch: Any) -> None:
    spoil(torch, lambda out, *_: out.t())


@fault("a scale of 1.05", PRODUCTS, "failed", "is off by 0.05")
def _(torch: Any) -> None:
    spoil(torch, lambda out, *_: out * 1.05)


@fault("summed in 8 bits of mantissa", "matmul.fp32", "failed", OFF)
def _(torch: Any) -> None:
    def change(out: Any, left: Any, right: Any) -> Any:
        total = (out * 0).to(torch.bfloat16)
        for at in range(0, left.shape[1], 16):
            part = left[:, at : at + 16].to(torch.bfloat16), right[at : at + 16].to(torch.bfloat16)
            total = total + (part[0].unsqueeze(-1) * part[1].unsqueeze(0)).sum(1)
        return total.to(out.dtype)

    spoil(torch, change)


@fault("fp32 rounded to bf16", "matmul.fp32", "failed", OFF)
def _(torch: Any) -> None:
    spoil(torch, lambda out, *_: out.to(torch.bfloat16).to(out.dtype))


@fault("not the same twice", PRODUCTS, "failed", OFF)
def _(torch: Any) -> None:
    spoil(torch, lambda out, *_: out + 0.1 * torch.rand_like(out) * out.abs().max())


@fault("right once, wrong after", PRODUCTS, "failed", OFF)
def _(torch: Any) -> None:
    seen: dict[Any, int] = {}

    def change(out: Any, *_: Any) -> Any:
        seen[out.dtype] = seen.get(out.dtype, 0) + 1
        return out * (1 if seen[out.dtype] % 4 == 1 else 2)

    spoil(torch, change)


@fault("the last result again", PRODUCTS, "failed", "values are NaN")
def _(torch: Any) -> None:
    kept: dict[Any, Any] = {}
    spoil(torch, lambda out, *_: kept.setdefault(out.dtype, out))


@fault("memory that nobody wrote", PRODUCTS, "failed", r"NaN or infinite|is off by")
def _(torch: Any) -> None:
    spoil(torch, lambda out, *_: torch.empty_like(out))


@fault(
    "the reference in float64 is wrong, too",
    "matmul.fp32,softmax.bf16",
    "failed",
    "reference in float64 is wrong",
    where=CPU,
)
def _(torch: Any) -> None:  # fmt: skip
    multiply, softmax = torch.Tensor.__matmul__, torch.softmax
    torch.Tensor.__matmul__ = lambda left, right: multiply(left, right) * 1.01
    torch.softmax = lambda x, axis: softmax(x * 1.01, axis)


@fault("softmax over the other axis", "softmax.bf16", "failed", r"is wrong|is off by")
def _(torch: Any) -> None:
    softmax = torch.softmax
    torch.softmax = lambda x, axis: softmax(x, 0)


class _Scaled:
    """Makes a function whose gradient is scaled."""

    def __new__(cls, torch: Any, factor: float) -> Any:
        class Function(torch.autograd.Function):  # type: ignore[misc]
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x.clone()

            @staticmethod
            def backward(ctx: Any, upstream: Any) -> Any:
                return upstream * factor

        return Function.apply


@fault(
    "a gradient half as large",
    "softmax.bf16,layer_norm.bf16",
    "failed",
    r"output 1 is off by|wrong: output 1",
)
def _(torch: Any) -> None:
    softmax, norm, halve = torch.softmax, torch.nn.functional.layer_norm, _Scaled(torch, 0.5)
    torch.softmax = lambda x, axis: softmax(halve(x), axis)
    torch.nn.functional.layer_norm = lambda x, *rest: norm(halve(x), *rest)


@fault("a gradient of zero", "softmax.bf16", "failed", r"output 1|reference 1 is")
def _(torch: Any) -> None:
    softmax, stop = torch.softmax, _Scaled(torch, 0.0)
    torch.softmax = lambda x, axis: softmax(stop(x), axis)


@fault("no gradient at all", "softmax.bf16", "failed", "does not require grad|NoneType")
def _(torch: Any) -> None:
    softmax = torch.softmax
    torch.softmax = lambda x, axis: softmax(x.detach(), axis)


@fault("attention that is not causal", "sdpa.math", "failed", "is off by")
def _(torch: Any) -> None:
    attend = torch.nn.functional.scaled_dot_product_attention
    torch.nn.functional.scaled_dot_product_attention = lambda q, k, v, is_causal: attend(q, k, v)


@fault("triangles of another diagonal", "triu.bf16,tril.bf16", "failed", r"is wrong|is off by")
def _(torch: Any) -> None:
    upper, lower = torch.Tensor.triu, torch.Tensor.tril
    torch.Tensor.triu = lambda x, k=0: upper(x, k + 1)
    torch.Tensor.tril = lambda x, k=0: lower(x, k - 1)


@fault("copies that lose a byte", "device.copy", "failed", r"element \d+ of 65536 is off by|is off by")
def _(torch: Any) -> None:
    clone = torch.Tensor.clone

    def losing(self: Any, **more: Any) -> Any:
        out = clone(self, **more)
        if out.dtype == torch.uint8:
            out.view(-1)[4096] ^= 1
        return out

    torch.Tensor.clone = losing


# --- what would judge, spoiled ---


@fault("zeroed inputs", PRODUCTS, "failed", "is zero throughout: its inputs were never drawn")
def _(torch: Any) -> None:
    draw = torch.randn
    torch.randn = lambda *shape, **more: draw(*shape, **more) * 0


@fault("inputs of ones", PRODUCTS, "failed", "throughout: its inputs were never drawn")
def _(torch: Any) -> None:
    draw = torch.randn
    torch.randn = lambda *shape, **more: draw(*shape, **more) * 0 + 1


@fault("norm patched to 0, products wrong", PRODUCTS, "failed", OFF)
def _(torch: Any) -> None:
    torch.Tensor.norm = lambda self, *_, **__: self.new_zeros(())
    torch.linalg.norm = torch.norm = lambda *_, **__: torch.zeros(())
    spoil(torch, lambda out, *_: out * 2)


@fault("torch.testing patched, products wrong", PRODUCTS, "failed", OFF)
def _(torch: Any) -> None:
    import torch.testing as testing

    testing.assert_close = lambda *_, **__: None
    torch.allclose = torch.equal = lambda *_, **__: True
    spoil(torch, lambda out, *_: out * 2)


@fault("isfinite patched, one NaN", PRODUCTS, "failed", "1 of 61440 values are NaN")
def _(torch: Any) -> None:
    torch.isfinite = lambda x: x == x.clone().fill_(0) + x
    torch.Tensor.isnan = lambda x: x.bool() & False

    def change(out: Any, *_: Any) -> Any:
        out.view(-1)[5] = float("nan")
        return out

    spoil(torch, change)


@fault("math patched, products wrong", PRODUCTS, "failed", OFF)
def _(torch: Any) -> None:
    torch.Tensor.__sub__ = torch.Tensor.__rsub__ = lambda self, other: self * 0
    torch.Tensor.abs = lambda self: self * 0
    spoil(torch, lambda out, *_: out * 2)


@fault("tolist tells ones", "matmul.fp32,device.copy,triu.bf16", "failed", r"is off by|is wrong|throughout")
def _(torch: Any) -> None:
    tolist = torch.Tensor.tolist
    torch.Tensor.tolist = lambda self: _ones(tolist(self))


def _ones(value: Any) -> Any:
    return [_ones(one) for one in value] if isinstance(value, list) else 1.0


@fault("float64 loses its digits", "matmul.fp32,softmax.bf16", "failed", r"is off by|is wrong", where=CPU)
def _(torch: Any) -> None:
    multiply, exp = torch.Tensor.__matmul__, torch.softmax

    def short(out: Any) -> Any:
        return out.to(torch.bfloat16).to(out.dtype)

    torch.Tensor.__matmul__ = lambda left, right: short(multiply(left, right))
    torch.softmax = lambda x, axis: short(exp(x, axis)) * (1 + 0.02 * (x.detach() > 1))


@fault(
    "NumPy that does not import", "matmul.fp32", "passed", "torch was its own judge", at_start=True, where=CPU
)
def _() -> None:
    sys.modules["numpy"] = None  # type: ignore[assignment]


@fault("NumPy that computes zeros", "matmul.fp32", "failed", "throughout|is wrong", at_start=True)
def _() -> None:
    import numpy

    numpy.einsum = lambda what, left, right: numpy.zeros((left.shape[0], right.shape[1]))  # type: ignore[assignment]


# --- what a process does ---

for _name, _op, _outcome, _words in (
    ("os._exit(0) in an op", "exit_zero", "crashed", "ended with status 0, at: first call"),
    ("os._exit(3) in an op", "exit", "crashed", "ended with status 3, at: first call"),
    ("a segmentation fault", "segv", "crashed", "died of SIGSEGV, at: first call"),
    ("abort()", "abort", "crashed", "died of SIGABRT"),
    ("the OOM killer", "kill", "crashed", "died of SIGKILL"),
    ("an endless loop", "spin", "timeout", "not done after 3 s, at: first call"),
    ("an endless sleep", "loop", "timeout", "not done after 3 s, at: first call"),
    ("pipes closed", "pipe", "crashed", "lost its pipe"),
    ("rubbish in the pipe", "rubbish", "crashed", "wrote rubbish into its pipe"),
    ("a missing kernel", "raises", "failed", "no kernel image is available"),
    ("a library that is not installed", "missing_library", "skipped", "is not installed"),
    (
        "a library that does not load",
        "broken_library",
        "failed",
        "does not import: ImportError: libnvJitLink",
    ),
    ("lines like answers", "chatter", HARMLESS, ""),
    ("12 MB of complaints", "flood", HARMLESS, ""),
    ("a daemon left behind", "daemon", HARMLESS, ""),
):
    plain(_name, f"fault.{_op}", _outcome, _words, timeout_s=3.0 if _outcome == "timeout" else None)
plain("an op that spoils the next", "fault.poison,fault.victim", HARMLESS, "")


@fault("SystemExit in an op", "matmul.fp32", "failed", "first call: SystemExit")
def _(torch: Any) -> None:
    spoil(torch, lambda *_: sys.exit(0))


@fault("KeyboardInterrupt in an op", "matmul.fp32", "failed", "first call: KeyboardInterrupt")
def _(torch: Any) -> None:
    def change(*_: Any) -> None:
        raise KeyboardInterrupt

    spoil(torch, change)


@fault("a recursion without end", "matmul.fp32", "failed", "RecursionError")
def _(torch: Any) -> None:
    def change(*given: Any) -> Any:
        return change(*given)

    spoil(torch, change)


@fault("memory that the system refuses", "matmul.fp32", "failed", "first call: MemoryError")
def _(torch: Any) -> None:
    import resource

    def change(out: Any, *_: Any) -> Any:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        room = pages * resource.getpagesize() + (1 << 30)
        resource.setrlimit(resource.RLIMIT_AS, (room, room))
        return bytearray(4 << 30) and out

    spoil(torch, change)


@fault("the default type is changed by an op", "matmul.bf16,matmul.fp32,softmax.bf16", HARMLESS, "")
def _(torch: Any) -> None:
    def change(out: Any, *_: Any) -> Any:
        torch.set_default_dtype(torch.float16)
        return out

    spoil(torch, change)


@fault("the folder of temporary files is removed by an op", PRODUCTS, HARMLESS, "")
def _(torch: Any) -> None:
    def change(out: Any, *_: Any) -> Any:
        import shutil

        shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)
        return out

    spoil(torch, change)


# --- how Python starts ---


@fault("1 GB printed at the start", "matmul.fp32", HARMLESS, "", at_start=True)
def _() -> None:
    for _ in range(1000):
        os.write(1, b"welcome\n" * 125_000)


@fault("1 GB of complaints at the start", "matmul.fp32", HARMLESS, "", at_start=True)
def _() -> None:
    for _ in range(1000):
        os.write(2, b"welcome\n" * 125_000)


@fault("a thread that never ends", "matmul.fp32", HARMLESS, "", at_start=True)
def _() -> None:
    threading.Thread(target=time.sleep, args=(3600,)).start()


@fault("an exit handler that hangs", "matmul.fp32", HARMLESS, "", at_start=True)
def _() -> None:
    import atexit

    atexit.register(time.sleep, 3600)


@fault("signals ignored", "fault.loop", "timeout", "not done after 3 s", at_start=True, timeout_s=3.0)
def _() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


@fault(
    "Python hangs at its start",
    "matmul.fp32",
    "unavailable",
    "did not list its ops in 10 s",
    at_start=True,
    timeout_s=5.0,
)
def _() -> None:  # fmt: skip
    time.sleep(3600)


@fault("Python ends at its start", "matmul.fp32", "unavailable", "could not list its ops", at_start=True)
def _() -> None:
    os._exit(0)


@fault(
    "Python crashes at its start",
    "matmul.fp32",
    "unavailable",
    "could not list its ops: it died of SIGSEGV",
    at_start=True,
)
def _() -> None:  # fmt: skip
    os.kill(os.getpid(), signal.SIGSEGV)


ENTRY = "[envdoctor.smokes]\nbroken = broken_plugin:register\n"
METADATA = "Metadata-Version: 2.1\nName: broken-plugin\nVersion: 1\n"


def _plugin(source: str) -> dict[str, str]:
    folder = "broken_plugin-1.dist-info"
    return {f"{folder}/entry_points.txt": ENTRY, f"{folder}/METADATA": METADATA, "broken_plugin.py": source}


plain("a plugin that hangs in the listing", "matmul.fp32", "unavailable", "did not list its ops",
      timeout_s=5.0, files=_plugin("import time\ntime.sleep(3600)\n"))  # fmt: skip
plain("a plugin that ends the listing", "matmul.fp32", "unavailable", "could not list its ops",
      files=_plugin("import os\nos._exit(0)\n"))  # fmt: skip
plain("a plugin that does not import", "matmul.fp32", HARMLESS, "entry point broken: ModuleNotFoundError",
      files=_plugin("import nowhere_to_be_found\n"))  # fmt: skip

# --- torch that is none ---


@fault(
    "torch: a library is missing",
    "matmul.fp32",
    "failed",
    "torch does not import: ImportError: libcudart",
    at_start=True,
)
def _() -> None:  # fmt: skip
    _instead_of_torch("raise ImportError('libcudart.so.13: cannot open shared object file')")


def _instead_of_torch(source: str) -> None:
    folder = tempfile.mkdtemp(dir=os.environ.get("TMPDIR"))
    (Path(folder) / "torch").mkdir()
    (Path(folder) / "torch" / "__init__.py").write_text(source)
    sys.path.insert(0, folder)


plain("torch: half installed", "matmul.fp32", "failed", "torch does not import: ModuleNotFoundError",
      files={"torch/__init__.py": "from torch._C import *\n"})  # fmt: skip


@fault("torch: an empty folder", "matmul.fp32", "failed", "torch is not whole", at_start=True)
def _() -> None:
    folder = Path(tempfile.mkdtemp(dir=os.environ.get("TMPDIR")))
    (folder / "torch").mkdir()
    sys.path[:] = [str(folder), *(path for path in sys.path if not (Path(path) / "torch").exists())]


plain("torch: another package of that name", "matmul.fp32", "failed", "torch is not whole",
      files={"torch.py": "__version__ = '2.11.0'\n"})  # fmt: skip
plain("torch: its import hangs", "matmul.fp32", "timeout", "at: importing torch", timeout_s=5.0,
      files={"torch.py": "import time\ntime.sleep(3600)\n"})  # fmt: skip
plain("torch: its import ends Python", "matmul.fp32", "crashed", "ended with status 0, at: importing torch",
      files={"torch.py": "import os\nos._exit(0)\n"})  # fmt: skip
plain("torch: its import crashes", "matmul.fp32", "crashed", "died of SIGSEGV, at: importing torch",
      files={"torch.py": "import ctypes\nctypes.string_at(0)\n"})  # fmt: skip


@fault("no kernels for the type", "matmul.bf16", "failed", "not implemented for 'BFloat16'")
def _(torch: Any) -> None:
    def change(out: Any, *_: Any) -> Any:
        if out.dtype == torch.bfloat16:
            raise RuntimeError("\"addmm_impl\" not implemented for 'BFloat16'")
        return out

    spoil(torch, change)


@fault("a third party's kernel is wrong", "bnb.nf4", "failed", "is off by", needs="bitsandbytes")
def _(torch: Any) -> None:
    import bitsandbytes.functional as functional

    right = functional.dequantize_4bit
    functional.dequantize_4bit = lambda *given, **more: right(*given, **more) * 1.1


# --- speeds ---


@fault("copies that copy nothing", "bandwidth.d2d", "failed", "values that were looked at did not arrive")
def _(torch: Any) -> None:
    torch.Tensor.copy_ = lambda self, *_, **__: self


@fault("products that are not computed", "bandwidth.matmul", "failed", "of the product is nan where")
def _(torch: Any) -> None:
    torch.mm = lambda left, right, out: out


@fault("products of zeros are fast", "bandwidth.matmul", "failed", "of the product is|throughout|never drawn")
def _(torch: Any) -> None:
    draw = torch.randn
    torch.randn = lambda *shape, **more: draw(*shape, **more) * 0


# --- cards ---


@contextmanager
def holding(args: argparse.Namespace, share: float) -> Iterator[None]:
    """Hold that share of the card's memory in a process of its own."""
    source = (
        "import sys, torch\n"
        "card = int(sys.argv[1]); free, total = torch.cuda.mem_get_info(card)\n"
        "held, left = [], int(free * float(sys.argv[2]))\n"
        "while left > 1 << 25:\n"
        "    try:\n"
        "        held.append(torch.empty(min(left, 1 << 30), dtype=torch.uint8, device=card))\n"
        "        left -= min(left, 1 << 30)\n"
        "    except torch.OutOfMemoryError:\n"
        "        left //= 2\n"
        "print('held', flush=True); sys.stdin.read()\n"
    )
    command = [args.python, "-c", source, args.device or "0", str(share)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        yield
    finally:
        child.kill()
        child.wait()


plain("a full card", "matmul.fp32,softmax.bf16", "failed", r"card 0 is full: held by .*, \d+ of \d+ GiB",
      where=GPU, beside=lambda args: holding(args, 1.0))  # fmt: skip
plain(
    "a card with half of its memory held",
    PRODUCTS,
    HARMLESS,
    "",
    where=GPU,
    beside=lambda args: holding(args, 0.5),
)
plain("the card is hidden by a number", "matmul.fp32", "failed", "GPU that torch does not reach", where=GPU,
      variables={"CUDA_VISIBLE_DEVICES": "9"})  # fmt: skip
plain(
    "the card is hidden, empty",
    "matmul.fp32",
    "skipped",
    "no GPU",
    where=GPU,
    variables={"CUDA_VISIBLE_DEVICES": ""},
)
plain("an endless kernel", "fault.gpu_loop", "timeout", "not done after", where=GPU, timeout_s=4.0)
plain("an assert on the device", "fault.gpu_assert,fault.gpu_after", "failed", "assert", where=GPU)
plain("more memory than there is", "fault.gpu_oom", "failed", "out of memory", where=GPU)


@fault(
    "exclusive mode, taken", "matmul.fp32", "failed", "torch does not reach: .*busy or unavailable", where=GPU
)
def _(torch: Any) -> None:
    def busy(*_: Any) -> None:
        raise RuntimeError("CUDA error: all CUDA-capable devices are busy or unavailable")

    torch.cuda.init = torch.cuda.device_count = busy


@fault("fp32 silently in TF32", "matmul.fp32", "failed", "is off by", where=GPU)
def _(torch: Any) -> None:
    multiply = torch.Tensor.__matmul__

    def product(left: Any, right: Any) -> Any:
        if left.is_cuda and left.dtype == torch.float32:
            torch.backends.cuda.matmul.allow_tf32 = True
        return multiply(left, right)

    torch.Tensor.__matmul__ = product


@fault(
    "a result of another stream, not waited for", PRODUCTS, "failed", r"NaN or infinite|is off by", where=GPU
)
def _(torch: Any) -> None:
    def change(out: Any, left: Any, right: Any) -> Any:
        late = torch.full_like(out, float("nan"))
        torch.cuda.synchronize()
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda._sleep(2 * 10**9)
            late.copy_(out)
        return late.clone()

    spoil(torch, change)


@fault("a graph that captured nothing", "cuda.graph", "failed", r"NaN or infinite|is off by", where=GPU)
def _(torch: Any) -> None:
    torch.cuda.CUDAGraph.replay = lambda self: None


@fault("copies between cards bring zeros", "p2p.copy", "failed", "is off by", where=PAIR)
def _(torch: Any) -> None:
    _without_peers(torch)


def _without_peers(torch: Any) -> None:
    to, copy = torch.Tensor.to, torch.Tensor.copy_

    def sent(self: Any, *given: Any, **more: Any) -> Any:
        out = to(self, *given, **more)
        return out * 0 if self.is_cuda and out.is_cuda and out.device != self.device else out

    def copied(self: Any, other: Any, **more: Any) -> Any:
        return (
            self
            if self.is_cuda and other.is_cuda and self.device != other.device
            else copy(self, other, **more)
        )

    torch.Tensor.to, torch.Tensor.copy_ = sent, copied


@fault(
    "a fast way between cards that carries nothing", "bandwidth.p2p", "failed", "did not arrive", where=PAIR
)
def _(torch: Any) -> None:
    _without_peers(torch)


@fault(
    "an all-reduce that reduces nothing",
    "nccl.all_reduce,bandwidth.all_reduce",
    "failed",
    "is off by|are wrong",
    where=PAIR,
)
def _(torch: Any) -> None:  # fmt: skip
    import torch.distributed as dist

    dist.all_reduce = lambda *_, **__: None


SITE = """
import importlib.util, os, sys
spec = importlib.util.spec_from_file_location("envdoctor_planted_faults", {path!r})
module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
module.plant(os.environ[{chosen!r}])
"""


def run(one: Fault, args: argparse.Namespace) -> tuple[int, list[dict[str, Any]], str]:
    """Return the exit status, the results and what was said on standard error with this fault planted."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in one.files.items():
            (Path(folder) / name).parent.mkdir(exist_ok=True)
            (Path(folder) / name).write_text(text)
        (Path(folder) / "sitecustomize.py").write_text(SITE.format(path=__file__, chosen=CHOSEN))
        path = os.pathsep.join([folder, str(PLUGINS), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        launch = f"import sys; sys.path[:0] = {[str(ROOT), *sys.path]!r}; "
        launch += "from envdoctor.cli import main; sys.exit(main(sys.argv[1:]))"
        command = [
            sys.executable,
            "-S",
            "-I",
            "-c",
            launch,
            "smoke",
            "--python",
            args.python,
            "--format",
            "json",
        ]
        command += ["--select", one.select, "--timeout", str(one.timeout_s or args.timeout)]
        command += ["--device", args.device] if args.device and one.where != PAIR else []
        env = {**os.environ, **one.variables, "PYTHONPATH": path, CHOSEN: one.name}
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
    try:
        return done.returncode, json.loads(done.stdout)["results"], done.stderr
    except ValueError:
        return done.returncode, [], done.stderr


def judge(one: Fault, code: int, results: list[dict[str, Any]], said: str) -> str:
    """Return what is wrong with how the fault was told; empty for nothing."""
    told = "; ".join(f"{r['op']} {r['outcome']}: {r['reason']}" for r in results) or said.strip()[-300:]
    if one.outcome == "unavailable":
        right = code == 3 and not results and re.search(one.words, said)
        return "" if right else f"UNNAMED (exit {code}): {told}"
    spoiled = [r for r in results if not r["op"].startswith("fault.gpu_after")]
    if one.outcome != HARMLESS and any(r["outcome"] == "passed" for r in spoiled):
        return f"SILENT: {told}"
    words = said if one.outcome == HARMLESS and not any(r["reason"] for r in results) else None
    for result in spoiled:
        reason = words if words is not None else str(result["reason"] or "")
        if result["outcome"] != one.outcome or not re.search(one.words, reason):
            return f"UNNAMED (exit {code}): {told}"
    expected = {"passed": 0, "skipped": code, "failed": 1, "crashed": 1, "timeout": 1}[one.outcome]
    return "" if results and code == expected else f"UNNAMED (exit {code}): {told}"


def has(python: str, module: str) -> bool:
    """True when the interpreter finds the module."""
    source = f"import importlib.util as u, sys; sys.exit(u.find_spec({module!r}) is None)"
    return subprocess.run([python, "-c", source]).returncode == 0


def applies(one: Fault, args: argparse.Namespace) -> bool:
    """True when the fault can be planted on this device."""
    if not fnmatch.fnmatchcase(one.name, args.only) or (one.needs and not has(args.python, one.needs)):
        return False
    kinds = (
        {EVERYWHERE, CPU} if args.device == "cpu" else {EVERYWHERE, GPU} | ({PAIR} if args.pair else set())
    )
    return one.where in kinds


def tell(one: Fault, problem: str) -> bool:
    """Print how a fault was told; True when it was wrong."""
    print(f"{'WRONG' if problem else 'right':<6} {one.name}", flush=True)
    if problem:
        print(f"       {problem}", flush=True)
    return bool(problem)


def main() -> int:
    """Plant, run, judge and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--device")
    parser.add_argument("--pair", action="store_true", help="this machine has two cards")
    parser.add_argument("--only", default="*")
    parser.add_argument("--timeout", type=float, default=60.0)
    parser.add_argument("--side", type=int, default=1, help="how many at a time")
    args = parser.parse_args()
    chosen = [one for one in FAULTS.values() if applies(one, args)]

    def tried(one: Fault) -> str:
        if one.beside is not None:
            with one.beside(args):
                return judge(one, *run(one, args))
        return judge(one, *run(one, args))

    together = [one for one in chosen if one.beside is None]
    alone = [one for one in chosen if one.beside is not None]
    wrong = 0
    with ThreadPoolExecutor(args.side) as pool:
        problems = {one.name: pool.submit(tried, one) for one in together}
        for one in chosen:
            problem = problems[one.name].result() if one in together else ""
            wrong += tell(one, problem) if one in together else 0
    for one in alone:
        wrong += tell(one, tried(one))
    print(f"{len(chosen)} faults of {len(FAULTS)} planted, {len(chosen) - wrong} named right, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
