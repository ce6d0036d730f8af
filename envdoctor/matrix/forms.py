"""What the texts of a row must be like: bounds, names of packages, conditions, templates.

A form is written into a field's type (`Annotated[str, BOUND]`). Its `check` looks at the text alone; `refers`
names what the text must be found among (packages, symptoms, …), which is looked up when rows are compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from envdoctor import lazy_re as re
from envdoctor.values import NamedTuple

Path = tuple[str | int, ...]
Part = tuple[Path, "Form", str]

_CLAUSE = r"\s{0,9}(>=|<=|==|!=|~=|>|<)\s{0,9}([^\s,<>=!~]+)\s{0,9}"
_NUMBER = r"\s*(>=|<=|==|!=|>|<)\s*-?\d+(\.\d+)?\s*"
_PLACEHOLDER = r"\{([A-Za-z0-9_./-]+)\}"


class Form(NamedTuple):
    """A kind of text: what it says to a reader, what is wrong with one (None: nothing), and what it names."""

    name: str
    says: str
    check: Callable[[str], str | None] = lambda text: None
    refers: str = ""
    parts: Callable[[Any], Iterator[Part]] | None = None


def _matching(pattern: str, problem: str) -> Callable[[str], str | None]:
    return lambda text: None if re.fullmatch(pattern, text) else problem


def check_bound(text: str) -> str | None:
    """Return what is wrong with PEP 440 clauses (`>=2,<3`) or `*`; an empty clause is wrong, too."""
    from envdoctor.specifiers import InvalidSpecifier, Specifier

    if text == "*":
        return None
    for clause in text.split(","):
        match = re.fullmatch(_CLAUSE, clause)
        try:
            Specifier(clause) if match else None
        except InvalidSpecifier:
            match = None
        if match is None:
            return f"{text!r} is no bound on versions"
    return None


def _check_version(text: str) -> str | None:
    from packaging.version import InvalidVersion, Version

    try:
        Version(text)
    except InvalidVersion:
        return f"{text!r} is no version"
    return None


def _check_number(text: str) -> str | None:
    if text == "*" or all(re.fullmatch(_NUMBER, clause) for clause in text.split(",")):
        return None
    return f"{text!r} is no bound on a number"


def _check_match(text: str) -> str | None:
    """Alternatives with `*`, perhaps negated, or one bound; a bound among alternatives never holds."""
    compared = text.removeprefix("!") if text[:2] in ("!>", "!<") else text
    if compared[:1] in tuple("<>=~") or compared.startswith("!="):
        return check_bound(compared) and _check_number(compared)
    return f"{text!r}: a bound stands alone" if re.search(r"[<>]=?\s*\d", text) else None


def _check_regex(text: str) -> str | None:
    try:
        re.compile(text)
    except re.error as error:
        return f"no regular expression: {error}"
    return None


def _or(words: tuple[str, ...], check: Callable[[str], str | None]) -> Callable[[str], str | None]:
    return lambda text: None if text in words else check(text)


ID = Form("id", "stable: capitals, digits and hyphens", _matching(r"[A-Z0-9][A-Z0-9.+-]*", "no row id"))
SOURCE = Form(
    "source",
    "what was opened: a page, thread or tag (`https://…`), `wheel:FILE`, or `measured:WHERE`",
    _matching(r"(https?://|wheel:|measured:|general:)\S.*", "no page, thread, tag, wheel or measurement"),
)
DAY = Form("day", "YYYY-MM-DD", _matching(r"20\d\d-(0[1-9]|1[0-2])-[0-3]\d", "no day (YYYY-MM-DD)"))
MONTH = Form("month", "YYYY-MM", _matching(r"20\d\d-(0[1-9]|1[0-2])", "no month (YYYY-MM)"))
NAME = Form("name", "lower case and underscores", _matching(r"(other\.)?[a-z0-9_]+", "no name"))
NEEDLE = Form(
    "needle", "in lower case", lambda text: None if text and text == text.lower() else "not in lower case"
)
TEXT = Form("text", "words for people", lambda text: None if text.strip() else "empty")
WORDS = Form("words", "more than a letter", lambda text: None if len(text.strip()) > 1 else "no words")
BOUND = Form("bound", "PEP 440 clauses (`>=2,<3`), or `*` for any version", check_bound)
VERSION = Form("version", "one PEP 440 version", _check_version)
MINOR = Form("minor", "a minor version, `2.9`", _matching(r"\d+\.\d+", "no minor version"))
NUMBER = Form("number bound", "comparisons with numbers (`>=0.9,<2`), or `*`", _check_number)
MATCH = Form("match", "alternatives (`a|b*`), a negation (`!a`), or one comparison (`>=4096`)", _check_match)
SECRET_KIND = Form(
    "kind of secret", "lower case and hyphens", _matching(r"[a-z0-9]+(-[a-z0-9]+)*", "no kind of secret")
)
REGEX = Form("regex", "a regular expression of Python's", _check_regex)
PACKAGE = Form(
    "package",
    "a distribution's normalized name, of the snapshot or of a `package` row",
    _matching(r"[a-z0-9]+(-[a-z0-9]+)*", "no package's name, and no condition that anyone judges"),
    "package",
)
PACKAGE_GLOB = Form("package glob", "packages by name, `*` for any letters", refers="package")
SYMPTOM = Form("symptom", "ids of symptoms, `*` for any letters", refers="symptom")
SETTING = Form(
    "setting", "a common setting (`setting` rows), or `other.` and a framework's own key", refers="setting"
)
CAPTURE = Form("capture", "a group that some symptom's pattern captures", refers="capture")
VARIABLE = Form(
    "variable", "an environment variable", _matching(r"[A-Z][A-Z0-9_]*", "no environment variable")
)
BUILD = Form(
    "build", "`NAME.FIELD` of a package's build", _matching(r"[a-z0-9-]+\.[a-z0-9_]+", "no field of a build")
)
OPERATION = Form(
    "operation", "smoke operations, `*` for any letters", _matching(r"[a-z0-9_.*@-]+", "no operation")
)
CAPABILITY = Form("capability", "a compute capability that an `architecture` row has", refers="capability")
VARIANT = Form(
    "variant", "a variant of PyTorch's index, `cu126`", _matching(r"cu\d{3}|cpu|xpu", "no variant")
)
SM = Form("machine code", "`sm_90`, `compute_90`", _matching(r"(sm|compute)_\d{2,3}[af]?", "no architecture"))
PCI = Form("PCI device", "four hexadecimal digits", _matching(r"[0-9a-f]{4}", "no PCI device id"))
PRESENCE = Form("presence", "a bound, `*` or `absent`", _or(("absent",), check_bound))


def _capability_bounds(text: str) -> Iterator[Part]:
    yield (), BOUND, text
    for version in re.findall(_CLAUSE, text):
        yield (), CAPABILITY, version[1]


CAPABILITIES = Form("capability bound", "a bound on compute capabilities", parts=_capability_bounds)


def _stack_bounds(when: Mapping[str, str]) -> Iterator[Part]:
    for name, text in when.items():
        if name != "compute_capability":
            yield (name,), PACKAGE, name
        yield (name,), BOUND if name != "compute_capability" else CAPABILITIES, text


STACK = Form("stack bounds", "bounds on packages, or on `compute_capability`", parts=_stack_bounds)
CUDA = Form("CUDA bound", "a bound on CUDA versions, `*`, or `cpu`", _or(("cpu",), check_bound))

ATOMS: Mapping[str, Form] = {
    **dict.fromkeys(("python", "glibc", "driver", "driver.cuda", "gpu.count"), BOUND),
    **dict.fromkeys(("shm_gib", "host_memory_gib", "gpu.memory_gib"), NUMBER),
    **dict.fromkeys(("driver.module", "fabric_manager", "nvml", "os", "distro", "arch", "container"), MATCH),
    **dict.fromkeys(("wsl", "environment.kind", "gpu.name", "engine", "model.weights"), MATCH),
    "gpu.cc": CAPABILITIES,
    "torch.cuda": CUDA,
    "toolkit": PRESENCE,
}
"""Conditions on the machine by name; any other key without a dot is a package."""
_PREFIXES = {
    "setting": SETTING,
    "env": VARIABLE,
    "astray": VARIABLE,
    "build": BUILD,
    "sym": CAPTURE,
    "smoke": OPERATION,
}


def key_part(key: str) -> tuple[Form, str] | None:
    """Return what the key of a condition names beside the machine itself; None for one of `ATOMS`."""
    if key in ATOMS:
        return None
    prefix, dot, rest = key.partition(".")
    return (_PREFIXES[prefix], rest) if dot and prefix in _PREFIXES else (PACKAGE, key)


def _conditions(when: Mapping[str, str]) -> Iterator[Part]:
    for key, text in when.items():
        named = key_part(key)
        if named is None:
            yield (key,), ATOMS[key], text
            continue
        yield (key,), *named
        yield (key,), PRESENCE if named[0] is PACKAGE else MATCH, text


def _placeholders(text: str) -> Iterator[Part]:
    yield (), WORDS, text
    for found in re.findall(_PLACEHOLDER, text):
        part, _, whole = found.partition("/")
        for key in (part, f"sym.{whole}") if whole else (part,):
            if named := key_part(key):
                yield (), *named


def _pins(pins: Mapping[str, str]) -> Iterator[Part]:
    for name, text in pins.items():
        yield (name,), TEXT if name.startswith("{") else PACKAGE, name
        yield (name,), TEMPLATE if "{" in text else BOUND, text


def _captured(captured: Mapping[str, str]) -> Iterator[Part]:
    for group, text in captured.items():
        yield (group,), CAPTURE, group
        yield (group,), MATCH, text


_TOLD_NAMES = {"setting": SETTING, "variable": VARIABLE}


def _tells(tells: Mapping[str, str]) -> Iterator[Part]:
    for place, group in tells.items():
        kind, _, name = place.partition(":")
        yield (place,), PLACE, kind
        if name and not name.startswith("{"):
            yield (place,), _TOLD_NAMES.get(kind, PACKAGE), name
        yield (place,), CAPTURE, group


CONDITIONS = Form(
    "conditions",
    "a key of the machine, a package, `setting.`, `env.`, `astray.`, `build.`, `sym.` or `smoke.`",
    parts=_conditions,
)
TEMPLATE = Form(
    "template", "words with `{torch}`, `{gpu.cc}`, `{sym.lib}` to be filled in", parts=_placeholders
)
PINS = Form("pins", "packages and the bounds that mend it", parts=_pins)
CAPTURED = Form("captured", "a symptom's captures and what they must be", parts=_captured)
TELLS = Form("tells", "which fact a capture tells: a place and the capture's name", parts=_tells)
PLACES = frozenset(
    (
        "driver.cuda",
        "driver.version",
        "toolkit",
        "torch.cuda",
        "torch.arch_list",
        "python",
        "host.glibc",
        "host.shm",
    )
) | {"gpu.cc", "gpu.name", "gpu.memory", "distribution", "setting", "present", "variable"}
"""What a capture may tell."""
PLACE = Form(
    "place", "a fact", lambda text: None if text in PLACES else f"{text!r} is no fact that a capture tells"
)
