"""A Dockerfile: what compiles CUDA code needs nvcc of torch's CUDA, and torch; what its base fits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envdoctor import lazy_re as re
from envdoctor.commands import commands
from envdoctor.facts import Observed, Setting
from envdoctor.facts.names import normalise
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix import tables
from envdoctor.matrix.snapshot import load_snapshot
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.view import View, torch_build
from envdoctor.rules.wheels import availability, python_specifier

_BEFORE = "only a pip before 25.3, with wheel installed, builds a package without pyproject.toml in place"
_NEWS = "https://github.com/pypa/pip/blob/main/NEWS.rst"
_EXTENSIONS = "https://github.com/pytorch/pytorch/blob/main/torch/utils/cpp_extension.py"
_TOOLKIT = (
    "https://github.com/NVIDIA/nvidia-container-toolkit/blob/main/internal/config/image/capabilities.go"
)
_CAPABILITIES = "NVIDIA_DRIVER_CAPABILITIES"
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


def check_cuda_major(view: View) -> Iterable[Finding]:
    """Find a step that compiles CUDA code with a toolkit of another CUDA major than torch's."""
    steps = [one for one in _steps(view) if not {"no nvcc", "another toolkit"} & one[2]]
    toolkits, flavour = view.facts.toolkits.get(), view.facts.setting("image.flavour")
    built = view.torch_cuda.get()
    if not toolkits or built is None or flavour is None or flavour.value != "devel":
        raise Skip("the image's toolkit or torch's CUDA is not told")
    toolkit = toolkits[0]
    for setting, word, _, row in steps:
        if toolkit.version.major == built.major:
            continue
        always = row.without_nvcc == "fails" and not row.on_index
        yield Finding(
            id="IMAGE-CUDA-MAJOR",
            severity=Severity.ERROR if always else Severity.WARNING,
            summary=f"{row.package} is compiled with the image's CUDA {toolkit.version} for a torch of "
            f"CUDA {built}: " + ("the build refuses" if always else "the build refuses unless a wheel fits"),
            cause="torch's builder of extensions compares nvcc's CUDA with torch's and stops where "
            "the majors differ.",
            evidence=(
                Evidence("step", f"install {word}", setting.source),
                Evidence("image's CUDA", str(toolkit.version), toolkit.source),
                *torch_build(view),
            ),
            remedies=(
                Remedy(f"Begin with a -devel image of CUDA {built.major}, best {built}."),
                Remedy(f"Install a torch that was built for CUDA {toolkit.version.major}."),
            ),
            certainty=Certainty.LIKELY,
            rows=(row.id,),
            sources=(_EXTENSIONS, row.source),
        )


def check_python(view: View) -> Iterable[Finding]:
    """Find an exact release that a Dockerfile installs and that has no wheel for the image's Python."""
    base, python = view.facts.setting("image.base"), view.facts.environment.python
    if base is None or not isinstance(python, Observed):
        raise Skip("no Dockerfile that tells its Python")
    minor = re.match(r"3\.(\d+)", python.value)
    snapshot = load_snapshot(view.matrix.folder)
    if minor is None:
        return
    for one in view.facts.environment.distributions.values():
        package = snapshot.package(one.name)
        if package is None or not package.crawled or one.origin not in (None, "index") or not one.version:
            continue
        have = availability(snapshot, package, f"=={one.version.split('+')[0]}", "linux")
        if have.source or have.any_python or not have.minors or int(minor[1]) in have.minors:
            continue
        yield _without_wheel(one.name, one.version, one.source, python, have.minors)


def _without_wheel(
    name: str, version: str, source: str, python: Observed[str], minors: frozenset[int]
) -> Finding:
    fitting = f"3.{min(minors)} to 3.{max(minors)}"
    return Finding(
        id="IMAGE-PYTHON",
        severity=Severity.ERROR,
        summary=f"{name} {version} has wheels for Python {fitting} only, and the image's is {python.value}",
        cause="An installer takes only wheels built for the running Python's minor version, and this release "
        "has no source on the index that it could build.",
        evidence=(Evidence(name, version, source), Evidence("Python", python.value, python.source)),
        remedies=(
            Remedy(
                f"Begin with an image of Python 3.{max(minors)}.", pins={"python": python_specifier(minors)}
            ),
            Remedy(
                f"Take a release of {name} that has wheels for this Python.",
                commands("envdoctor pin {} --python-version {}", name, python.value),
            ),
        ),
        certainty=Certainty.LIKELY,
        sources=(f"wheel:{name}",),
    )


def check_capabilities(view: View) -> Iterable[Finding]:
    """Find an image that asks for the driver without the part that CUDA needs."""
    base = view.facts.setting("image.base")
    told = view.facts.variables.get(_CAPABILITIES, "").lower()
    if base is None or not told:
        raise Skip("no Dockerfile that sets NVIDIA_DRIVER_CAPABILITIES")
    asked = {one.strip() for one in told.split(",")}
    if "all" in asked or {"compute", "utility"} <= asked:
        return
    lacks = "compute" if "compute" not in asked else "utility"
    broken = lacks == "compute" and view.facts.distribution("torch") is not None
    yield Finding(
        id="IMAGE-DRIVER-CAPABILITIES",
        severity=Severity.ERROR if broken else Severity.WARNING,
        summary=f"{_CAPABILITIES}={told} leaves out {lacks}: the container gets no "
        + ("libcuda, and torch sees no card" if lacks == "compute" else "nvidia-smi and no NVML"),
        cause="NVIDIA's container runtime puts only those parts of the driver into a container that its "
        "image asks for; unset, it is utility and compute.",
        evidence=(
            Evidence(_CAPABILITIES, told, base.source),
            Evidence("image", base.value, base.source),
        ),
        remedies=(
            Remedy(
                f"Set {_CAPABILITIES}={','.join(sorted(asked | {'compute', 'utility'}))}, or leave it unset."
            ),
        ),
        certainty=Certainty.LIKELY,
        sources=(_TOOLKIT,),
    )


RULES = (
    Rule("IMAGE-NO-NVCC", "What a Dockerfile compiles has its compiler", check_nvcc),
    Rule("IMAGE-TORCH-FIRST", "What a Dockerfile builds against torch finds it", check_torch_first),
    Rule("IMAGE-CUDA-MAJOR", "What a Dockerfile compiles meets torch's CUDA", check_cuda_major),
    Rule("IMAGE-PYTHON", "What a Dockerfile pins has a wheel for its Python", check_python),
    Rule("IMAGE-DRIVER-CAPABILITIES", "A Dockerfile asks for the driver's CUDA", check_capabilities),
)
