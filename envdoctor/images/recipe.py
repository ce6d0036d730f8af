"""What a Dockerfile does in order: variables set, packages installed, whether CUDA's compiler is there."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from envdoctor import lazy_re as re
from envdoctor.images.dockerfile import Built, Instruction, arguments, expanded
from envdoctor.probes.variables import select_variables
from envdoctor.values import dataclass

_SPLIT = re.compile(r"&&|\|\||[;\n|]")
_CUDA = re.compile(r"(?:^|/)(?:nvidia/cuda|cuda)(?::|$)|(?:^|/)pytorch/pytorch:|nvcr\.io/nvidia/")
_FLAVOUR = re.compile(r"-(runtime|devel|base)(?=-|$)")
_WHOLE = re.compile(r"nvcr\.io/nvidia/(?:pytorch|nemo|tritonserver|cuda-dl-base|tensorrt):")
_NVCC = re.compile(
    r"(?:^|[/:])(?:nvidia-cuda-toolkit|cuda-nvcc[\w.-]*|cuda-toolkit[\w.-]*|cuda-compiler[\w.-]*|cuda-\d[\d-]*"
    r"|cuda|cudatoolkit-dev)(?:[=:<>]|$)"
)
_PYTHON = re.compile(r"(?:^|/)python:(\d+\.\d+(?:\.\d+)?)")
_APT_PYTHON = re.compile(r"python(3\.\d{1,2})(?:-(?:dev|venv|distutils|full|minimal))?$")
_CONDA_PYTHON = re.compile(r"python==?(3\.\d{1,2}(?:\.\d{1,3})?)(?:[.*=].*)?$")
_UNKNOWN = re.compile(r"(?:\$(?:\w+|\{\w+\})[;:, ]*)+")
"""A value of which nothing is known but variables that nobody sets."""
_PIP = ("pip", "pip3", "pip2")
_PREFIXES = ("sudo", "exec", "time", "nice", "then", "do", "else", "!", "(", "{")
_VALUED = frozenset(
    (
        *("-r", "--requirement", "-c", "--constraint", "-i", "--index-url", "--extra-index-url", "-f"),
        *("--find-links", "-t", "--target", "--prefix", "--python", "-p", "--platform", "--timeout"),
        *("--torch-backend", "--no-binary", "--only-binary", "--config-settings", "-C", "--progress-bar"),
        *("--root", "--src", "--trusted-host", "--cache-dir", "--index-strategy", "--retries", "--proxy"),
        *("--default-timeout", "--build-option", "--global-option", "--install-option", "--upgrade-strategy"),
        *("--index", "--default-index", "-e", "--editable", "--override", "--overrides", "--exists-action"),
    )
)


@dataclass(frozen=True, slots=True)
class Install:
    """One command that installs or removes Python packages; `nvcc` is whether a compiler was there before."""

    tool: str
    """`pip`, `conda` or `uninstall`."""
    wanted: tuple[str, ...]
    files: tuple[str, ...]
    index: str
    isolated: bool
    """True where pip builds apart from what is installed."""
    nvcc: bool | None
    another: bool
    """True where a step before it installs a toolkit, so that the image's own may not be the one in use."""
    line: int
    last: int


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a Dockerfile leads to."""

    base: str
    line: int
    flavour: str
    """`runtime`, `devel`, `base`, `none` (no CUDA in the image), or nothing where it is not known."""
    variables: dict[str, tuple[str, int]]
    installs: tuple[Install, ...]
    python: tuple[str, int] | None
    notes: tuple[str, ...]


def read_recipe(built: Built) -> Recipe:
    """Follow the instructions of a Dockerfile."""
    return _Reader(built).recipe()


class _Reader:
    def __init__(self, built: Built) -> None:
        self._built = built
        self._told: dict[str, str] = {}
        self._variables: dict[str, tuple[str, int]] = {}
        self._installs: list[Install] = []
        self._notes: list[str] = []
        found = _PYTHON.search(built.base)
        self._python = (found[1], built.line) if found else None
        self._nvcc = {"devel": True, "runtime": False, "base": False, "none": False}.get(flavour(built.base))
        self._another = self._several = False

    def recipe(self) -> Recipe:
        """Return all of it."""
        for one in self._built.instructions:
            self._follow(one)
        return Recipe(
            self._built.base,
            self._built.line,
            flavour(self._built.base),
            self._variables,
            tuple(self._installs),
            None if self._several else self._python,
            tuple(dict.fromkeys(self._notes)),
        )

    def _follow(self, one: Instruction) -> None:
        if one.word in ("ARG", "ENV"):
            found = arguments(one.text, self._told)
            kept = {name: value for name, value in found.items() if value or one.word == "ENV"}
            self._told |= kept
            if one.word == "ENV":
                told = {name: value for name, value in kept.items() if not _UNKNOWN.fullmatch(value)}
                self._variables |= {name: (value, one.line) for name, value in told.items()}
        elif one.word == "RUN":
            for command in commands_of(one.text):
                self._command([expanded(word, self._told) for word in command], one)
        elif one.word == "COPY" and "nvcc" not in one.text and "--from=" in one.text:
            self._notes.append(f"line {one.line}: what it copies from another stage or image is not followed")

    def _command(self, words: Sequence[str], step: Instruction) -> None:
        line = step.line
        if installer := pip_command(words):
            verb, rest = installer
            self._installs.append(_install(verb, rest, self._nvcc, self._another, step))
            self._see_nvcc(rest)
        elif words[0] in ("conda", "mamba", "micromamba"):
            self._conda(words, step)
        elif words[0] in ("apt-get", "apt", "yum", "dnf", "microdnf", "apk") and "install" in words:
            self._see_nvcc(words)
            pythons = [match[1] for word in words if (match := _APT_PYTHON.match(word))]
            if pythons:
                self._see_python(pythons[-1], line)
        elif words[0] == "pyenv":
            self._several = True
        elif (words[0] == "uv" and words[1:2] == ["venv"]) or words[:3] == ["uv", "python", "install"]:
            if found := re.search(r"\b(3\.\d{1,2}(?:\.\d{1,3})?)\b", " ".join(words)):
                self._python = (found[1], line)
        elif any(word.endswith(".run") and "cuda" in word for word in words):
            self._nvcc = self._another = True  # NVIDIA's own installer of a toolkit

    def _conda(self, words: Sequence[str], step: Instruction) -> None:
        if not {"install", "create"} & set(words[:3]):
            return
        wanted = tuple(word for word in words[2:] if not word.startswith("-"))
        self._see_nvcc(wanted)
        pythons = [match[1] for word in wanted if (match := _CONDA_PYTHON.match(word))]
        if pythons:
            self._python = (pythons[-1], step.line)
        self._installs.append(_of_conda(wanted, self._nvcc, self._another, step))

    def _see_python(self, version: str, line: int) -> None:
        """Keep the Python that the system's packages bring; of two nobody can say which one runs."""
        if self._python is None:
            self._python = (version, line)
        elif ".".join(self._python[0].split(".")[:2]) != version:
            self._several = True

    def _see_nvcc(self, words: Sequence[str]) -> None:
        if any(_NVCC.search(word) for word in words):
            self._nvcc = self._another = True


def allowed_variables(told: dict[str, str]) -> dict[str, str]:
    """Return the variables that change how the stack behaves, none that looks secret."""
    return select_variables(told)[0]


def flavour(image: str) -> str:
    """Return which part of CUDA an image's name says that it holds."""
    if _WHOLE.search(image):
        return "devel"
    if not _CUDA.search(image):
        known = re.search(
            r"(?:^|/)(?:python|ubuntu|debian|alpine|fedora|miniconda3?|mambaforge|uv)(?::|@|$)", image
        )
        return "none" if known else ""
    found = _FLAVOUR.search(image)
    return found[1] if found else ""


def commands_of(text: str) -> Iterator[list[str]]:
    """Yield the simple commands of a RUN, in shell or JSON form, as words; none of them is run."""
    text = re.sub(r"^(?:--\w+=\S+\s+)+", "", text)
    if text.startswith("["):
        text = " ".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text))
        text = re.sub(r"^\S*sh -l?c ", "", text)
    for part in _SPLIT.split(_outside_quotes(text)):
        try:
            words = shlex.split(part.replace("\0", "&&").replace("\1", ";").replace("\2", "|"), comments=True)
        except ValueError:
            words = part.split()
        while words and (words[0] in _PREFIXES or re.fullmatch(r"\w+=.*", words[0], re.DOTALL)):
            words = words[1:]
        if words:
            yield words


def _outside_quotes(text: str) -> str:
    """Hide what separates commands where it stands within quotes."""

    def hidden(match: re.Match[str]) -> str:
        return match[0].replace("&&", "\0").replace(";", "\1").replace("|", "\2").replace("\n", " ")

    return re.sub(r"\"(?:[^\"\\]|\\.){0,1000}\"|'[^']{0,1000}'", hidden, text)


def pip_command(words: Sequence[str]) -> tuple[str, list[str]] | None:
    """Return the verb (`install`, `uninstall`) and what follows it of a command of pip or uv."""
    rest = list(words)
    name = rest[0].rpartition("/")[2]
    if re.fullmatch(r"python[\d.]*|pypy3?", name) and "-m" in rest and "pip" in rest:
        rest = rest[rest.index("pip") :]
    elif name == "uv" and rest[1:2] == ["pip"]:
        rest = rest[1:]
    elif name not in _PIP and not re.fullmatch(r"pip[\d.]+", name):
        return None
    place = next((i for i, word in enumerate(rest) if word in ("install", "uninstall")), None)
    return None if place is None else (rest[place], rest[place + 1 :])


def installs_of(script: str) -> Iterator[Install]:
    """Yield what the commands of pip and uv in a shell's text install or remove."""
    step = Instruction("RUN", script, 1, 1)
    for words in commands_of(script):
        if installer := pip_command(words):
            yield _install(*installer, None, False, step)


def _of_conda(wanted: tuple[str, ...], nvcc: bool | None, another: bool, step: Instruction) -> Install:
    return Install("conda", wanted, (), "", True, nvcc, another, step.line, step.last)


def _install(verb: str, words: Sequence[str], nvcc: bool | None, another: bool, step: Instruction) -> Install:
    wanted, files, index = [], [], ""
    isolated = "--no-build-isolation" not in words
    skip = False
    for place, word in enumerate(words):
        option, _, value = word.partition("=")
        following = value or (words[place + 1] if place + 1 < len(words) else "")
        if word.startswith("-"):
            if option in ("-r", "--requirement"):
                files.append(following)
            elif option in ("-i", "--index-url", "--extra-index-url", "--index", "--default-index"):
                index = following if "download.pytorch.org" in following or not index else index
            elif option in ("-e", "--editable"):
                wanted.append(following)
            elif word.startswith("-r"):
                files.append(word[2:])
        elif not skip and word not in (">", "2>&1", "&"):
            wanted.append(word)
        skip = option in _VALUED and not value and word.startswith("-")
    tool = "pip" if verb == "install" else "uninstall"
    return Install(tool, tuple(wanted), tuple(files), index, isolated, nvcc, another, step.line, step.last)
