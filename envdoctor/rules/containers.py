"""A Dockerfile's steps in their order: what compiles CUDA code needs nvcc, and torch before it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envdoctor import lazy_re as re
from envdoctor.commands import commands
from envdoctor.facts import Setting
from envdoctor.facts.names import normalise
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix import tables
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.view import View

_BEFORE = "only a pip before 25.3, with wheel installed, builds a package without pyproject.toml in place"
_NEWS = "https://github.com/pypa/pip/blob/main/NEWS.rst"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")


def _steps(view: View) -> Iterator[tuple[Setting, str, frozenset[str], tables.CudaBuildRow]]:
    """Yield the steps that install a package which may have to be compiled, each with what was there."""
    told = [setting for setting in view.facts.settings if setting.key == "image.install"]
    if not told:
        raise Skip("no Dockerfile that installs something is told")
    rows = view.matrix.rows(tables.CudaBuildRow)
    for setting in told:
        word, *state = setting.value.split(" | ")
        row = next((row for row in rows if _is_of(row, word)), None)
        if row is not None and ".whl" not in word:
            yield setting, word, frozenset(state), row


def _is_of(row: tables.CudaBuildRow, word: str) -> bool:
    if "://" in word:
        return row.repository.lower() in word.lower()
    name = _NAME.match(word)
    return row.on_index and name is not None and normalise(name[0]) == row.package


def check_nvcc(view: View) -> Iterable[Finding]:
    """Find a step that compiles CUDA code in an image without its compiler."""
    for setting, word, state, row in _steps(view):
        if "no nvcc" in state:
            yield _without_nvcc(view, setting, word, row)


def _without_nvcc(view: View, setting: Setting, word: str, row: tables.CudaBuildRow) -> Finding:
    fails = row.without_nvcc == "fails"
    base = view.facts.setting("image.base")
    ends = {
        "fails": "its build fails",
        "wheel": "its build fails unless a ready wheel fits this Python, torch and CUDA",
        "cpu": "it is built for the CPU alone, and no step fails",
    }[row.without_nvcc]
    return Finding(
        id="IMAGE-NO-NVCC",
        severity=Severity.ERROR if fails else Severity.WARNING,
        summary=f"{row.package} is compiled in an image that has no nvcc: {ends}",
        cause="Images named runtime or base, and those without CUDA, hold no compiler for CUDA. Only a devel "
        "image, or a toolkit installed in an earlier step, does.",
        evidence=(
            Evidence("step", f"install {word}", setting.source),
            *((Evidence("image", base.value, base.source),) if base else ()),
        ),
        remedies=(
            Remedy(
                "Build it in a stage that begins with the -devel image of the same CUDA, and copy the wheel."
            ),
            Remedy("Begin with the -devel image."),
        ),
        certainty=Certainty.CERTAIN if fails else Certainty.LIKELY,
        rows=(row.id,),
        sources=(row.source,),
    )


def check_torch_first(view: View) -> Iterable[Finding]:
    """Find a step that builds a package whose build imports torch where torch is not seen by it."""
    for setting, word, state, row in _steps(view):
        if not row.imports_torch:
            continue
        flavour, based = view.facts.setting("image.flavour"), view.facts.setting("image.base")
        brings = (
            flavour is None or based is None or "pytorch" in based.value
        )  # what another image holds is not known
        found = "torch" in state or brings
        if "isolated" in state:
            why = "pip builds it apart from what is installed (build isolation), where there is no torch"
            why += f"; {_BEFORE}" if found else ""
        elif not found:
            why = (
                "no earlier step installs torch; one in the same command does not count, as builds come first"
            )
        else:
            continue
        yield Finding(
            id="IMAGE-TORCH-FIRST",
            severity=Severity.WARNING if found else Severity.ERROR,
            summary=f"{row.package}'s build imports torch and does not find it: {why}",
            cause="Its setup.py imports torch without requiring it for the build: pip neither installs torch "
            "for it nor, in isolation, shows the one that is there.",
            evidence=(Evidence("step", f"install {word}", setting.source),),
            remedies=(
                Remedy(
                    "Install torch in an earlier step, then it without isolation.",
                    (
                        "pip install torch packaging ninja wheel setuptools",
                        *commands("pip install --no-build-isolation {}", word),
                    ),
                ),
            ),
            certainty=Certainty.LIKELY,
            rows=(row.id,),
            sources=(row.source, *((_NEWS,) if found else ())),
        )


RULES = (
    Rule("IMAGE-NO-NVCC", "What a Dockerfile compiles has its compiler", check_nvcc),
    Rule("IMAGE-TORCH-FIRST", "What a Dockerfile builds against torch finds it", check_torch_first),
)
