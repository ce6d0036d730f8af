"""What an error message says of itself, by the wordings that libraries share: a cause and what follows.

It is asked of lines that no rule explains, whichever package wrote them. What a wording names (a package, a
card, a list of values, numbers) is held against the facts, and turned into what to type where that can be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from envdoctor import lazy_re as re
from envdoctor.facts import ErrorSeen
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix import tables
from envdoctor.matrix.snapshot import STACK
from envdoctor.patterns import row_pattern
from envdoctor.rules.calendar import package_facts
from envdoctor.rules.guards import wanted_package
from envdoctor.rules.interface_lookup import distribution_of
from envdoctor.rules.messages import asked_by, distinct, is_lacking, message_of, newer
from envdoctor.rules.ranges import parse_version, specifier_in, version_satisfies
from envdoctor.rules.view import View
from envdoctor.values import dataclass

ID = "SAID-BY-MESSAGE"
LINE = 400
"""Characters of a message that are read."""
LONGEST = 110
"""Characters of a part that is quoted."""
MANY = 400
"""Values of a list that are still compared."""
VALUES = 12
"""Values of a list that are shown."""
_TOGETHER = re.compile(r"(?:\{\w{1,20}\}){1,6}")
_NAME = re.compile(r"\{(\w{1,20})\}")
_EDGE = " \t'\"`,:;"
_LEAD = re.compile(r"(?i)^(?:the|an?|that|your|this|to|of|for|is|but|provided|following|value|value for)\s+")
_CLAUSE = re.compile(
    r"(?i)^(?:(?:when|if|since|because|for|as|while|with|in|currently|cannot)\b.{0,100}, |currently )"
)
_OPEN = re.compile(r"(?i)(?:\b(?:that|which|not|to|no|does|do|did|any|is|are)|n['’]t)$")
"""How a part ends that is no subject of what follows."""
_PREFIX = re.compile(r"^[\w .()-]{1,40}: (?=\S)")
_LISTS = frozenset({"allowed", "listed", "named"})
"""Parts in which values are looked for, by their quotes."""
_SUBJECTS = frozenset({"subject", "name", "one", "old"})
_SENTENCE = re.compile(r"(?<=[.;!])\s(?=[A-Z`'\"])|\n")
_QUOTED = re.compile(r"['\"`]([\w./+:-]{1,60})['\"`]")
_GIVEN = re.compile(
    r"(?i)(?:\bgot|\bfound|\breceived|\bgiven|\bgave|\bnot|\bbut|:|=)\s{0,2}(?:was |is )?"
    r"['\"`]?([\w./+-]{1,60})['\"`]?[\s.,;)]{0,3}$"
)
_REFUSED = re.compile(r"(?i)\b(?:got|found|received|not)\b:? ?['\"`]?([\w./+-]{1,60})")
_LIST_ENDS = re.compile(r"(?i)[,.;]? (?:but )?(?:got|found|received|instead|not)\b|\. [A-Z]|\(?\be\.g\.")
_ITEM = re.compile(r"['\"`]([^'\"`\n]{1,60})['\"`]")
_CAPABILITY = re.compile(r"\d{1,3}(?:\.\d)?")
_WORDS = re.compile(r"[A-Za-z0-9_][\w.+/:-]{0,60}")
_NO_VALUE = frozenset(
    [
        "and",
        "or",
        "the",
        "of",
        "a",
        "an",
        "dict_keys",
        "dict_values",
        "set",
        "list",
        "tuple",
        "frozenset",
        "following",
        "got",
        "but",
    ]
)
_SPAN = re.compile(r"(\d{1,9})\)?\s*$")
_VOID = frozenset(["you", "it", "we", "this", "that", "there", "which", "they"])
"""Words that name nothing by themselves."""
_NOTHING = re.compile(
    r"(?i)(?:behaviou?r|errors?|exception|indent|symbols?|references?|syntax|characters?|tokens?|eof|"
    r"end of)\b"
)
"""How a part begins that names no thing: an unexpected error, an undefined symbol."""
_PACKAGES = frozenset({"command", "needed"})
"""Groups of wordings that call the word a package."""
_SELF_MADE = frozenset(
    {"module", "package", "library", "it", "this", "you", "version", "model", "python", "pip"}
)


@dataclass(frozen=True, slots=True)
class Saying:
    """What a message says: the cause in words, ways out, what the facts show, and the row that reads it."""

    row: str
    title: str
    source: str
    cause: str
    remedies: tuple[Remedy, ...] = ()
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class _Read:
    """A wording that was met: the row, what it captured, and the line."""

    view: View
    row: tables.SayingRow
    told: Mapping[str, str]
    library: str

    def filled(self, templates: Sequence[str]) -> Iterator[str]:
        """Yield the sentences of which all parts are known."""
        for template in templates:
            parts = {names: self._first(names) for names in _TOGETHER.findall(template)}
            if all(parts.values()):
                yield _replaced(template, parts)

    def _first(self, names: str) -> str:
        return next(filter(None, (self.told.get(name, "") for name in _NAME.findall(names))), "")


def said_finding(view: View, error: ErrorSeen, library: str) -> Finding | None:
    """Return what an error message says of itself as the answer to it; None where no wording is known."""
    saying = saying_of(view, error, library) if error.kind != "said" else None
    asked = asked_by(error.text) if error.kind != "said" else ()
    if saying is None and asked and not any(map(partial(_is_known, view), error.symptoms)):
        saying = Saying(
            "", "the message itself says what to do", "", "What it asks for was not done, or not so."
        )
    if saying is None:
        return None
    return Finding(
        id=ID,
        severity=Severity.ERROR,
        summary=f"{saying.title}: {error.text[:240]}",
        cause=f"{saying.cause} That is what the message says of itself; no rule knows more of it.",
        evidence=(Evidence("error", error.text, error.source), *saying.evidence),
        remedies=distinct((*asked, *saying.remedies)),
        certainty=Certainty.LIKELY if saying.evidence else Certainty.UNCERTAIN,
        rows=(saying.row,) if saying.row else (),
        sources=(saying.source,) if saying.source else (),
        explains=error.symptoms,
        prior=0.3,
    )


def saying_of(view: View, error: ErrorSeen, library: str = "") -> Saying | None:
    """Return what the message of an error says by the first wording that is met in it.

    `library` is whose code spoke, where that is known. A line that the matrix knows is left to its rules,
    but for what means the same whoever says it.
    """
    known = any(map(partial(_is_known, view), error.symptoms))
    message = " ".join(message_of(error)[:LINE].split())
    sentences = [part for part in _SENTENCE.split(message) if part]
    for row in view.matrix.rows(tables.SayingRow):
        if known and not row.always:
            continue
        for part in [message] if row.reads == "choice" else sentences:
            met = any(needle in part.lower() for needle in row.needle)
            match = row_pattern(row.pattern).search(part) if met else None
            if match and (saying := _READERS[row.reads](_Read(view, row, _captured(match), library))):
                return saying
    return None


def _is_known(view: View, symptom: str) -> bool:
    """True for a signature that says what failed, not only that something did."""
    row = view.matrix.row(tables.SymptomRow, symptom)
    return row is not None and not row.fault and not row.informs


def _captured(match: re.Match[str]) -> dict[str, str]:
    """Return the parts that a wording captured, whole words and tidy."""
    parts = {}
    for name, text in match.groupdict().items():
        start = match.start(name)
        inside = start > 0 and match.string[start - 1].isalnum() and (text or "")[:1].isalnum()
        whole = text.partition(" ")[2] if inside else text or ""
        parts[name] = whole if name in _LISTS else _clean(name, whole)
    parts["before"] = match.string[: match.start()]
    return {name: text for name, text in parts.items() if text}


def _clean(name: str, text: str) -> str:
    """Return a captured part without what surrounds it in the sentence."""
    text = text.strip(_EDGE)
    if name in _SUBJECTS:
        text = _CLAUSE.sub("", text)
        text = _PREFIX.sub("", text)
    while (bare := _LEAD.sub("", text)) != text:
        text = bare
    for opening, closing in ("()", "[]", "{}"):
        if text.count(opening) < text.count(closing):
            text = text.rstrip(closing)
        elif text.count(opening) > text.count(closing):
            text = text.lstrip(opening) if text.startswith(opening) else text + closing
    for quote in "'\"`":
        text = text.replace(quote, "") if text.count(quote) % 2 else text
    text = text.strip(_EDGE).rstrip(".")
    if text.lower() in _VOID or _NOTHING.match(text) or (name in _SUBJECTS and _OPEN.search(text)):
        return ""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1].rpartition(' ')[0]}…"


def _plain(read: _Read) -> Saying | None:
    """Return the row's own words; None where no sentence of its cause can be filled."""
    cause = " ".join(list(read.filled(read.row.cause))[:2])
    remedies = tuple(Remedy(text) for text in read.filled(read.row.remedies))
    return Saying(read.row.id, read.row.title, read.row.source, cause, remedies) if cause else None


def _replaced(template: str, parts: Mapping[str, str]) -> str:
    return _TOGETHER.sub(lambda match: parts[match[0]], template)


def _with(read: _Read, **told: str) -> _Read:
    return replace(read, told={**read.told, **told})


def _package(read: _Read) -> Saying | None:
    """Return what is said of a package; None where the word is no package's name.

    One that is on record has a command; of another only the message's own call of an installer tells it.
    """
    groups = ("package", "asked", "sought", "needed", "kept_out")
    word = next((read.told[group] for group in groups if group in read.told), "")
    name = distribution_of(read.view.matrix, word.lower().replace("-", "_")) if word else ""
    known = name in STACK or package_facts(read.view, name) is not None
    if not name or word.lower() in _SELF_MADE or not (known or read.told.keys() & _PACKAGES):
        return None
    specifier = _specifier(read.told.get("specifier") or read.told.get("least", ""))
    saying = _plain(_with(read, package=name, specifier=specifier))
    if saying is None:
        return None
    have = read.view.version(name)
    shown = (Evidence(name, str(have or "listed"), "the facts"),) if read.view.installed(name) else ()
    if shown and (not specifier or (have and version_satisfies(have, specifier))):
        unseen = f"{name} {have or ''} is listed here all the same: another environment runs, or the process"
        cause = f"{saying.cause} {unseen} is older than the installation."
        return replace(saying, cause=cause, evidence=shown)
    return replace(saying, remedies=wanted_package(name, specifier), evidence=shown)


def _specifier(text: str) -> str:
    """Return the range that a wording names; a bare release is the least."""
    text = text.replace(" ", "").rstrip(".,")
    bare = parse_version(text.lstrip("v"))
    return f">={bare}" if bare else specifier_in(text) if text else ""


def _card(read: _Read) -> Saying | None:
    """Return what is said of cards, beside the lowest compute capability that the facts tell."""
    asked = _of_family(read) or _capability(read.told.get("capability", ""))
    if not asked:
        return None
    saying = _plain(_with(read, capability=asked))
    lowest = read.view.lowest_capability()
    shown = (Evidence("gpu", f"compute capability {lowest}", "the facts"),) if lowest else ()
    return replace(saying, evidence=shown) if saying else None


def _of_family(read: _Read) -> str:
    """Return the lowest compute capability of the architecture that is named; empty for none."""
    name = read.told.get("family", "").lower()
    rows = read.view.matrix.rows(tables.ArchitectureRow) if name else ()
    return next((str(min(row.capabilities)) for row in rows if row.name.lower() == name), "")


def _capability(text: str) -> str:
    """Return a compute capability (8.0, 80 as in sm_80) as it is told; empty for what is none."""
    if not _CAPABILITY.fullmatch(text):
        return ""
    number = float(text)
    number = number / 10 if number >= 30 and "." not in text else number
    return f"{number:.1f}" if 3 <= number <= 13 else ""


def _multiple(read: _Read) -> Saying | None:
    """Return what is said of two numbers of which one must divide the other, with those that would do."""
    subject = read.told.get("subject", "")
    number = read.told.get("got") or read.told.get("number") or _last_number(subject)
    divisor = _last_number(read.told.get("divisor", ""))
    saying = _plain(_with(read, subject=subject or number or "A size"))
    if saying is None or not number or not divisor:
        return saying
    whole, part = int(number), int(divisor)
    if not whole or not part or whole % part == 0:
        return saying
    shown = Evidence("remainder", f"{whole} = {whole // part} x {part} + {whole % part}", "the message")
    fitting = [str(n) for n in range(1, min(whole, 4096) + 1) if whole % n == 0][:VALUES]
    below, above = whole // part * part, (whole // part + 1) * part
    ways = (
        Remedy(f"What divides {whole}: {', '.join(fitting)}."),
        Remedy(f"What {part} divides, next to it: {f'{below} or ' if below else ''}{above}."),
    )
    return replace(saying, remedies=(*ways, *saying.remedies), evidence=(shown,))


def _last_number(text: str) -> str:
    match = _SPAN.search(text.rstrip("]). "))
    return match[1] if match else ""


def _choice(read: _Read) -> Saying | None:
    """Return what is said of a list of values: which was given, and which of the list is meant."""
    listed = next((read.told[g] for g in ("allowed", "listed", "named") if g in read.told), "")
    values = _values(listed)
    if not values:
        return None
    given = read.told.get("given") or _given_value(listed, read.told.get("before", ""))
    given = "" if given in values else given
    shown = ", ".join(values[:VALUES]) + (" and more" if len(values) > VALUES else "")
    saying = _plain(_with(read, allowed=shown, given=given or "What was given"))
    near = _nearest(given, values)
    meant = (Remedy(f"Write {near}, if that is meant."),) if near else ()
    return replace(saying, remedies=(*meant, *saying.remedies)) if saying else None


def _given_value(listed: str, before: str) -> str:
    """Return the value that was refused: named after `got`, or in quotes before the list."""
    if tail := _REFUSED.search(listed):
        return tail[1]
    last, quoted = _GIVEN.search(before), _QUOTED.findall(before)
    return quoted[-1] if quoted else last[1] if last else ""


def _values(text: str) -> list[str]:
    """Return the values of a list as it is printed."""
    text = _LIST_ENDS.split(text)[0]
    quoted = _ITEM.findall(text)
    words = quoted or [one for one in _WORDS.findall(text) if one.lower() not in _NO_VALUE]
    loose = not quoted and ("," not in text and " or " not in text and " and " not in text)
    return [] if loose or len(words) > MANY else list(dict.fromkeys(word.rstrip(".:") for word in words))


def _nearest(given: str, values: Sequence[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(given, values, 1, 0.7) if given else []
    return close[0] if close else ""


def _lacking(read: _Read) -> Saying | None:
    """Return what is said to be lacking; a newer release of who says so may have it."""
    saying = _plain(read)
    known = read.library and package_facts(read.view, read.library) is not None
    if saying is None or not known or not is_lacking(" ".join(read.told.values())):
        return saying
    return replace(saying, remedies=(*saying.remedies, newer(read.library)))


_READERS: Mapping[str, Callable[[_Read], Saying | None]] = {
    "": _plain,
    "package": _package,
    "card": _card,
    "multiple": _multiple,
    "choice": _choice,
    "lacking": _lacking,
}
