"""What the texts of facts may be: names that commands and files are made of, one line, or anything."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated

from envdoctor import lazy_re as re
from envdoctor.values import dataclass


@dataclass(frozen=True, slots=True)
class Form:
    """What a text must look like to be taken for `what`, checked when facts are read from JSON."""

    what: str
    pattern: re.Pattern[str]
    longest: int = 200

    def holds(self, text: str) -> bool:
        """True when `text` has the form."""
        return len(text) <= self.longest and self.pattern.fullmatch(text) is not None


_DISTRIBUTION = re.compile(r"[_-]?[A-Za-z0-9][A-Za-z0-9._-]*(?:\*[A-Za-z0-9._-]+)?")
_OP = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@:+-]*(?:\[[0-9]{1,4}-[0-9]{1,4}\])?")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
_LINE = re.compile("[^\x00-\x1f\x7f\x85\u2028\u2029]*")

DISTRIBUTION = Form("a distribution's name", _DISTRIBUTION, 256)
DistributionName = Annotated[str, DISTRIBUTION]
"""A name as PEP 508 allows it, or as conda has it: `_libgcc_mutex`; `nvidia-*-cu12`: a family."""
OpName = Annotated[str, Form("an op's name", _OP)]
Word = Annotated[str, Form("a word", _WORD)]
Line = Annotated[str, Form("one line of text", _LINE, 4096)]

NOT_PACKAGES = frozenset({"python", "nvidia-driver", "cuda-toolkit-system", "glibc"})
"""What pins may name and no installer of packages installs."""


_SEPARATORS = re.compile(r"[-_.]+")


@lru_cache(maxsize=8192)
def normalise(name: str) -> str:
    """Return a distribution's normalized name (PEP 503); `packaging.utils` is dear to load."""
    return _SEPARATORS.sub("-", name).lower()
