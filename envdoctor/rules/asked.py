"""What a Python error says is missing: the name, module, member or argument, and who asked for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum

from envdoctor import lazy_re as re
from envdoctor.facts import ErrorSeen, Facts, Frame, Symptom
from envdoctor.facts.quantities import whole_number
from envdoctor.values import dataclass

_SITE = re.compile(r"(?:site|dist)-packages[/\\]((?:[\w.-]{1,80}[/\\]){0,12})([\w-]{1,80})\.py$")
_OPENED = re.compile(r"\b([A-Z]\w{0,120})\((?:[^()\n]{0,300},)?\s{0,20}$")
"""A call of a class whose arguments stand on the next lines."""
_FROM = re.compile(r"^\s*from\s+([\w.]{1,208})\s+import\b")
_SET = re.compile(r"^\s*self\.(\w{1,80})\s*(?::[^=]{1,80})?=(?!=)")
PASSES_ON = re.compile(r"\((?:self, ?)?(?:\*\w{1,40}, ?)?\*\*\w{1,40}\)")
"""The call of a wrapper, which hands on the arguments that it was given."""

PYTHONS_OWN = frozenset(
    (
        "SYM-IMPORT-NAME",
        "SYM-IMPORT-NAME-ONLY",
        "SYM-NO-MODULE",
        "SYM-NO-ATTRIBUTE",
        "SYM-UNEXPECTED-KWARG",
        "SYM-UNEXPECTED-KWARG-SAID",
        "SYM-POSITIONAL-COUNT",
        "SYM-ARGUMENT-NEEDED",
        "SYM-NO-SETTER",
        "SYM-NO-SETTER-NAMED",
        "SYM-PYTHON-SAYS",
    )
)
"""Sentences of the interpreter, which libraries imitate: their words alone tell of no library."""


_NEEDED = {
    "SYM-IMPORT-NAME-ONLY": ("name",),
    "SYM-PICKLED-NAME": ("module", "name"),
    "SYM-NO-ATTRIBUTE": ("attribute",),
    "SYM-NAME-UNDEFINED": ("undefined",),
    "SYM-UNEXPECTED-KWARG": ("kwarg",),
    "SYM-UNEXPECTED-KWARG-SAID": ("kwarg",),
    "SYM-POSITIONAL-COUNT": ("count",),
    "SYM-ARGUMENT-NEEDED": ("name",),
}
"""What the judging of each symptom needs of its line."""

REMOTE = "transformers_modules"
"""The folder into which a model's own code is loaded."""


class Lack(Enum):
    """The ways in which an interface falls short of what is asked."""

    NAME = "name"
    MODULE = "module"
    MEMBER = "member"
    KEYWORD = "keyword"
    POSITION = "position"
    NEEDED = "needed"
    SETTER = "setter"
    UNDEFINED = "undefined"


@dataclass(frozen=True, slots=True)
class Wanted:
    """One thing that an error line misses."""

    lack: Lack
    symptom: Symptom
    name: str
    module: str = ""
    owner: str = ""
    """The callable or class; empty where the line does not tell."""
    count: int = 0
    """How many arguments were given by position."""
    asker: Frame | None = None
    """The innermost frame, or the one that asks."""


def wanted_of(facts: Facts, symptom: Symptom) -> Iterator[Wanted]:
    """Yield what the line of a symptom misses; nothing for a symptom of another kind."""
    error = next((e for e in reversed(facts.errors) if _tells(e, symptom)), None)
    frames = error.frames if error else ()
    asker = next((frame for frame in reversed(frames) if not _answers(frame)), None)
    captured = {**dict.fromkeys(_NEEDED.get(symptom.id, ()), ""), **symptom.captured}
    if any(not captured[name] for name in _NEEDED.get(symptom.id, ())):
        return  # a sent file may leave out what the line captures
    if symptom.id == "SYM-IMPORT-NAME-ONLY":
        module = importing(asker) if asker else None
        lack = Lack.NAME if module else Lack.UNDEFINED
        yield Wanted(lack, symptom, _whole_name(captured["name"], asker), module or "", asker=asker)
    elif symptom.id == "SYM-PICKLED-NAME":
        yield Wanted(Lack.NAME, symptom, captured["name"], captured["module"])
    elif symptom.id.startswith("SYM-IMPORT-") and "module" in captured:
        lack = Lack.NAME if captured.get("name") else Lack.MODULE
        yield Wanted(lack, symptom, captured.get("name") or "", captured["module"], asker=asker)
    elif symptom.id == "SYM-NO-MODULE" and "module" in captured:
        yield Wanted(Lack.MODULE, symptom, "", captured["module"], asker=asker)
    elif symptom.id == "SYM-NO-ATTRIBUTE":
        owner = captured.get("class") or captured.get("type") or captured.get("raised") or ""
        lack = Lack.NAME if captured.get("module") else Lack.MEMBER
        module = captured.get("module") or ""
        yield Wanted(lack, symptom, captured["attribute"], module, owner, asker=asker)
    elif symptom.id == "SYM-NAME-UNDEFINED":
        yield Wanted(Lack.UNDEFINED, symptom, captured["undefined"], asker=asker)
    elif symptom.id.startswith("SYM-UNEXPECTED-KWARG"):
        yield _keyword(symptom, _calling(frames))
    elif symptom.id == "SYM-POSITIONAL-COUNT":
        caller, count = next(reversed(_calling(frames)), None), whole_number(captured["count"]) or 0
        yield Wanted(Lack.POSITION, symptom, "", owner=_owner(captured), count=count, asker=caller)
    elif symptom.id == "SYM-ARGUMENT-NEEDED":
        caller = next(reversed(_calling(frames)), None)
        yield Wanted(Lack.NEEDED, symptom, captured["name"], owner=_owner(captured), asker=caller)
    elif symptom.id.startswith("SYM-NO-SETTER"):
        yield from _setter(symptom, frames)


def _answers(frame: Frame) -> bool:
    """True for what Python calls for a name that is not there: who asks for it stands above."""
    return frame.function.partition("(")[0].rpartition(".")[2] in ("__getattr__", "__getattribute__")


def _calling(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """Return the frames but those that pass on what they were given: a wrapper chooses no argument."""
    return tuple(frame for frame in frames if not PASSES_ON.search(frame.code))


def _tells(error: ErrorSeen, symptom: Symptom) -> bool:
    return symptom.id in error.symptoms and (symptom.text in error.text or error.text in symptom.text)


def _whole_name(name: str, asker: Frame | None) -> str:
    """Return a name whose end may be cut off as the line that imports it has it."""
    words = re.findall(r"\w{1,120}", asker.code or "") if asker else []
    return name if name in words else next((word for word in words if word.startswith(name)), name)


def _owner(told: Mapping[str, str]) -> str:
    """Return the callable, with the underscores of an `__init__` that Markdown takes for emphasis."""
    class_, function = told.get("class"), told.get("function", "")
    return f"{class_}.{'__init__' if function == 'init' else function}" if class_ else function


def _keyword(symptom: Symptom, frames: tuple[Frame, ...]) -> Wanted:
    """Return the keyword that a callable does not know; a call in the frames names a bare `__init__`."""
    keyword, owner = symptom.captured["kwarg"].replace(" ", "_"), _owner(symptom.captured)
    call = re.compile(
        rf"([A-Za-z_][\w.]{{0,120}})\((?:[^()]|\([^()]{{0,200}}\)){{0,200}}?\b{re.escape(keyword)}\s*="
    )
    asker = frames[-1] if frames else None
    for frame in reversed(frames):
        if match := call.search(frame.code):
            called = match[1].rpartition(".")[2]
            if owner == "__init__":
                return Wanted(Lack.KEYWORD, symptom, keyword, owner=f"{called}.__init__", asker=frame)
            if owner in (called, "forward"):  # a module is called by the name of its instance
                return Wanted(Lack.KEYWORD, symptom, keyword, owner=owner, asker=frame)
    opened = _OPENED.search(asker.code) if asker and owner == "__init__" else None
    told = f"{opened[1]}.__init__" if opened else "" if owner == "__init__" else owner
    return Wanted(Lack.KEYWORD, symptom, keyword, owner=told, asker=asker)


def _setter(symptom: Symptom, frames: tuple[Frame, ...]) -> Iterator[Wanted]:
    if name := symptom.captured.get("name"):
        owner = symptom.captured.get("class", "")
        yield Wanted(Lack.SETTER, symptom, name, owner=owner, asker=frames[-1] if frames else None)
        return
    for frame in reversed(frames):
        if match := _SET.match(frame.code):
            yield Wanted(Lack.SETTER, symptom, match[1], asker=frame)
            return


def importing(frame: Frame) -> str | None:
    """Return the module that the quoted line of a frame imports from; None where it cannot be told."""
    match = _FROM.match(frame.code)
    if match is None:
        return None
    dots = len(match[1]) - len(match[1].lstrip("."))
    if not dots:
        return match[1]
    own = module_of(frame)
    if own is None:
        return None
    parts = own.split(".")
    parts = parts if frame.file.endswith("__init__.py") else parts[:-1]
    parts = parts[: len(parts) - dots + 1]
    return ".".join([*parts, *([match[1][dots:]] if match[1][dots:] else [])]) if parts else None


def module_of(frame: Frame) -> str | None:
    """Return the module of an installed file; None for a file of the user's own."""
    match = _SITE.search(frame.file)
    if match is None:
        return None
    folders = [part for part in re.split(r"[/\\]", match[1]) if part]
    return ".".join([*folders, *([] if match[2] == "__init__" else [match[2]])])
