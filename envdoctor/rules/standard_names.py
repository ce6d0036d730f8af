"""Names of Python's own library that not every Python has: which versions and which systems have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from envdoctor import lazy_re as re
from envdoctor.commands import commands, pip_install
from envdoctor.facts import ErrorSeen
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.rules.calendar import package_facts
from envdoctor.rules.generations import asking_package
from envdoctor.rules.ranges import parse_version
from envdoctor.rules.standard_modules import NAMES, standard_members
from envdoctor.rules.view import View
from envdoctor.values import dataclass

ID = "PYTHON-LIBRARY"
_QUOTE = "['\"`]"
_DOTTED = r"[A-Za-z_][\w.]{0,120}"
_MISSES = (
    re.compile(rf"No module named {_QUOTE}?(?P<module>{_DOTTED}){_QUOTE}?"),
    re.compile(
        rf"cannot import name {_QUOTE}(?P<name>\w{{1,80}}){_QUOTE} from {_QUOTE}(?P<module>{_DOTTED})"
    ),
    re.compile(
        rf"module {_QUOTE}(?P<module>{_DOTTED}){_QUOTE} has no attribute {_QUOTE}(?P<name>\w{{1,80}})"
    ),
    re.compile(
        rf"{_QUOTE}(?P<owner>{_DOTTED}){_QUOTE}(?: object)? has no attribute {_QUOTE}(?P<name>\w{{1,80}})"
    ),
    re.compile(
        rf"(?P<taker>{_DOTTED})\(\) got an unexpected keyword argument {_QUOTE}(?P<key>\w{{1,80}})"
        r"|(?P<bare>\w{1,60})\(\) takes no keyword arguments"
    ),
)
"""What a message misses of a module, of a class, or among the keywords that a function takes."""
_SYSTEMS = {"w": "Windows", "l": "Linux", "m": "macOS"}
_LETTERS = {"windows": "w", "linux": "l", "macos": "m"}


@dataclass(frozen=True, slots=True)
class _Held:
    """Which Pythons have a name, by first and last versions (empty: no bound), and which systems lack it."""

    name: str
    since: str
    until: str
    gone_with: str
    """The version that took it away."""
    lacking: str


def standard_name_finding(view: View, error: ErrorSeen) -> Finding | None:
    """Return what the versions and systems of Python say of a name that is missed; None where all have it."""
    missed = next(filter(None, (found for pattern in _MISSES if (found := pattern.search(error.text)))), None)
    words = {name: text for name, text in missed.groupdict().items() if text} if missed else {}
    held = next(filter(None, (_held(view, name) for name in _meant(view, words))), None) if words else None
    if held is None:
        return None
    told = _of_system(view, error, held) or _of_version(view, error, held)
    if told is None:
        return None
    summary, cause, ways = told
    return Finding(
        id=ID,
        severity=Severity.ERROR,
        summary=f"{summary}: {error.text[:200]}",
        cause=cause,
        evidence=(Evidence("error", error.text, error.source),),
        remedies=tuple(ways),
        certainty=Certainty.LIKELY if "module" in words else Certainty.UNCERTAIN,
        sources=(f"https://docs.python.org/3/library/{held.name.partition('.')[0]}.html",),
        explains=error.symptoms,
        prior=0.7,
    )


def _meant(view: View, told: Mapping[str, str]) -> Iterator[str]:
    """Yield the names of the table that a message may miss."""
    module, name = told.get("module", ""), told.get("name", "")
    if module:
        yield f"{module}.{name}" if name else module
        return
    if name:
        found = standard_members(view, f"{told['owner']}.{name}")
    else:
        taker = told.get("bare", "") or told["taker"].removesuffix(".__init__")
        found = standard_members(view, f"{taker}({told.get('key', '')}")
    yield from found if len({one.partition("(")[0] for one in found}) == 1 else ()


def _held(view: View, name: str) -> _Held | None:
    table = view.matrix.generated(NAMES)
    if (spans := table.get("names", {}).get(name)) is None:
        return None
    first, last, *rest = spans
    pythons = table["pythons"]
    return _Held(
        name.removeprefix("builtins."),
        pythons[first] if first else "",
        pythons[last] if last + 1 < len(pythons) else "",
        pythons[last + 1] if last + 1 < len(pythons) else "",
        rest[0] if rest else "",
    )


def _of_system(view: View, error: ErrorSeen, held: _Held) -> tuple[str, str, list[Remedy]] | None:
    system = _LETTERS.get(view.facts.host.os.get() or "", "")
    if not held.lacking or (system and system not in held.lacking):
        return None
    has = [name for letter, name in _SYSTEMS.items() if letter not in held.lacking]
    lacks = [name for letter, name in _SYSTEMS.items() if letter in held.lacking]
    here = _SYSTEMS.get(system) or " and ".join(lacks)
    unix = " (Unix, POSIX)" if "Linux" in has and "macOS" in has else ""
    asker = _asker(view, error)
    what = f"{asker or 'the code that runs'} asks for it without looking where it runs"
    ways = [
        Remedy(
            f"Upgrade {asker or 'what asks for it'} to a release that asks for it on {' and '.join(has)}"
            " alone (or downgrade it to the one before it began to), or leave out the part that asks.",
            pip_install(asker, options="-U") if _is_on_record(view, asker) else (),
        )
    ]
    if "Linux" in has:
        text = "Or run it on Linux" + (": under Windows in WSL 2 or Docker." if "Windows" in lacks else ".")
        ways.append(Remedy(text, ("wsl --install",) if "Windows" in lacks else ()))
    return (
        f"{held.name} is of Python's library on {' and '.join(has)}{unix} only: Python on {here} lacks it",
        f"Python's library has {held.name} on {' and '.join(has)} only; {what}. No package brings it.",
        ways,
    )


def _of_version(view: View, error: ErrorSeen, held: _Held) -> tuple[str, str, list[Remedy]] | None:
    told = view.python.get()
    python = parse_version(told) if told else None
    since, until = (parse_version(one) if one else None for one in (held.since, held.until))
    early = bool(python and since and python.release[:2] < since.release)
    late = bool(python and until and python.release[:2] > until.release)
    if python is not None and not early and not late:
        return None
    asker = _asker(view, error)
    who = asker or "what asks for it"
    upgrade = pip_install(asker, options="-U") if _is_on_record(view, asker) else ()
    here = f"Python {told}" if told else "this Python"
    if late or (until is not None and not early and python is None):
        return (
            f"{held.name} is gone from Python's library since Python {held.gone_with}, and {here} is as new",
            f"{who} was written for Python {held.until} and older.",
            [
                Remedy(f"Upgrade {who}: a newer release does without {held.name}.", upgrade),
                Remedy(f"Or use Python {held.until}.", commands("uv venv --python {}", held.until)),
            ],
        )
    if since is None:
        return None
    return (
        f"{held.name} came with Python {held.since}, and {here} is older: it is too old for this code",
        f"{who} was written for Python {held.since} and newer.",
        [
            Remedy(
                f"Make an environment with Python {held.since} or newer.",
                commands("uv venv --python {}", max(("3.12", held.since), key=lambda one: int(one[2:]))),
            ),
            Remedy(f"Or take an older release of {who}, which still supports this Python."),
        ],
    )


def _asker(view: View, error: ErrorSeen) -> str:
    return next(filter(None, (asking_package(view, frame) for frame in reversed(error.frames))), "")


def _is_on_record(view: View, name: str) -> bool:
    return bool(name) and package_facts(view, name) is not None
