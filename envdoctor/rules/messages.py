"""An error message by itself: what of a line is the message, and what it asks to be done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envdoctor import lazy_re as re
from envdoctor.commands import commands, pip_install
from envdoctor.facts import ErrorSeen
from envdoctor.findings import Remedy

_CLASS = re.compile(r"^(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Za-z_]\w{0,80}:\s*")

_RAISING = re.compile(r"^raise \w{1,80}\(\s{0,4}[rfb]{0,2}(?:\"([^\"]{8,400})|'([^']{8,400}))")
_VALIDATOR = re.compile(r"(?:Value error|Assertion failed), (.{3,600}?)(?: \[type=|$)")
"""How pydantic wraps what a validator raised."""
_FIELD = re.compile(r"\{[^{}]{0,120}\}")
_SENTENCE = re.compile(r"(?<=[.!;])\s{1,4}|\s\d\.\s")
_ASKING = re.compile(
    r"^(?:so |either |otherwise,? |alternatively,? |if [^,]{3,120}, |\w{2,30}: )?"
    r"(?:please|try|consider|use|set|make sure|you (?:can(?! find)|should|need|must|have to)|run|install|"
    r"upgrade|update|reduce|increase|decrease|lower|raise|pass|ensure|check|specify|disable|enable|add|remove|"
    r"provide)\b",
    re.IGNORECASE,
)
_VARIABLE = re.compile(
    r"\b([A-Z][A-Z0-9]{1,30}(?:_[A-Z0-9]{1,30}){1,6})\b\W{1,3}(?:must|should|needs to|has to) be (?:set to )?"
    r"[\"'`=]{0,2}(\d{1,6}|[Tt]rue|[Ff]alse)\b"
)
"""What a message says that an environment variable must be."""
_BLAMED = re.compile(
    r"\b(?:due to|because(?: of)?|caused by)(?: the)? [`'\"]{0,2}([A-Za-z_][\w.]{2,80})[`'\"]{0,2}"
    r" (?:is|was|being|is being) set to [`'\"]{0,2}(\w[\w.]{0,30})"
)
"""What a message gives as the reason: a setting and its value."""
_OPPOSITE = {"True": "False", "False": "True", "true": "false", "false": "true"}
_LACKING = re.compile(
    r"\b(?:not (?:yet |currently )?(?:supported|implemented|recognized)|only supports?|unsupported|"
    r"does(?:n't| not) (?:yet |currently )?support)\b",
    re.IGNORECASE,
)
ASKED = 3
"""How many sentences of a message that ask for something are taken for ways out."""


def asked_by(text: str) -> tuple[Remedy, ...]:
    """Return what an error message itself asks to be done."""
    validator = _VALIDATOR.search(text)
    message = validator[1] if validator else _CLASS.sub("", text, count=1)
    sentences = (part.strip() for part in _SENTENCE.split(message))
    asking = [part for part in sentences if len(part) <= 300 and _ASKING.match(part)]
    told = tuple(Remedy(f"The message itself asks: {part}") for part in asking[:ASKED])
    return (*_blamed_settings(message), *_asked_variables(message), *told)


def _blamed_settings(message: str) -> Iterator[Remedy]:
    for name, value in dict(_BLAMED.findall(message)).items():
        other = _OPPOSITE.get(value, f"something else than {value}")
        yield Remedy(f"Set {name} to {other}: the message itself names it as the reason.")


def _asked_variables(message: str) -> Iterator[Remedy]:
    for name, value in dict(_VARIABLE.findall(message)).items():
        yield Remedy(f"The message itself asks for {name}.", commands("export {}={}", name, value))


def message_of(error: ErrorSeen) -> str:
    """Return the message alone: of a validation error what the validator said, of a cut one its code's."""
    validator = _VALIDATOR.search(error.text)
    return validator[1] if validator else _quoted_by_code(error) or _CLASS.sub("", error.text, count=1)


def _quoted_by_code(error: ErrorSeen) -> str:
    """Return the message in the line of code at which a traceback is cut off; empty where there is none."""
    code = error.frames[-1].code if error.kind == "cut" and error.frames else ""
    match = _RAISING.search(code)
    return _FIELD.sub("...", match[1] or match[2]) if match else ""


def distinct(remedies: Iterable[Remedy]) -> tuple[Remedy, ...]:
    """Return remedies in their order, each text once."""
    once: dict[str, Remedy] = {}
    for remedy in remedies:
        once.setdefault(remedy.text, remedy)
    return tuple(once.values())


def is_lacking(text: str) -> bool:
    """True where a message says that the code has no such thing: a later release may."""
    return _LACKING.search(text) is not None


def newer(library: str) -> Remedy:
    """Return the upgrade that may bring what a release lacks."""
    text = f"Upgrade {library}: what a release does not have yet, a newer one may."
    return Remedy(text, pip_install(library, options="-U"))
