"""As much of torch as a smoke's measure asks for, on lists of numbers; `FAKE_TORCH` makes its import fail."""

import math
import os
import signal
import time

_fate = os.environ.get("FAKE_TORCH", "")
if _fate == "import error":
    raise ImportError("libcudart.so.13: cannot open shared object file: No such file or directory")
if _fate == "segv":
    os.kill(os.getpid(), signal.SIGSEGV)
if _fate == "hang":
    time.sleep(3600)

__version__ = "0.0+fake"
float64 = "float64"
float32 = "float32"
uint8 = "uint8"
contiguous_format = "contiguous"


class Tensor:
    def __init__(self, values):
        self.values = list(values)

    @property
    def shape(self):
        return (len(self.values),)

    def detach(self):
        return self

    def to(self, *_, **__):
        return self

    def clone(self, **_):
        return Tensor(self.values)

    def view(self, *_):
        return self

    def numel(self):
        return len(self.values)

    def is_floating_point(self):
        return True

    def fill_(self, value):
        self.values[:] = [value] * len(self.values)
        return self

    def norm(self):
        return math.sqrt(sum(v * v for v in self.values))

    def sum(self):
        return sum(self.values)

    def __invert__(self):
        return Tensor(not value for value in self.values)

    def __sub__(self, other):
        return Tensor(value - other.values[index] for index, value in enumerate(self.values))

    def __getitem__(self, index):
        return self.values[index]

    def __setitem__(self, index, value):
        self.values[index] = value


def set_num_threads(count):
    assert count == 1


def tensor(values, **_):
    return Tensor(values)


def full(shape, value, **_):
    return Tensor([value] * shape[0])


def isfinite(tensor):
    return Tensor(math.isfinite(value) for value in tensor.values)


class cuda:
    @staticmethod
    def init():
        raise RuntimeError("No CUDA GPUs are available")

    @staticmethod
    def device_count():
        return 0
