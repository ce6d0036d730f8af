"""Arguments that a text without an error line tells to be gone: which releases take them."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from envdoctor import lazy_re as re
from envdoctor.facts import Symptom
from envdoctor.matrix.interface_records import Record, Spans, load_record, recorded_libraries
from envdoctor.matrix.late_tables import holding
from envdoctor.matrix.snapshot import STACK
from envdoctor.matrix.tables import RenameRow
from envdoctor.rules.asked import Lack, Wanted
from envdoctor.rules.interface_lookup import Missing
from envdoctor.rules.ranges import parse_version
from envdoctor.rules.view import View

SYMPTOM = "SYM-TOLD-ARGUMENT"
_GROUPS = ("before_quoted", "before", "after_quoted", "after")
_LOGGED = re.compile(r"\||^\s*(?:\[|\W{0,3}(?:WARN|INFO|DEBUG)|\d{2,4}[-:/])|\w(?:Warning|WARNING)\b")
_WORD = re.compile(r"\w{3,60}")
_TROUBLE = re.compile(
    r"(?i)unexpected|unknown|not (?:be )?(?:accept|recogni|known|pass|under)|complain|error|fail|br[eo]a?k|"
    r"crash|\bdies\b|报错|不存在|(?:n['’]t|does not|do not|can ?not) (?:be )?"
    r"(?:accept|recogni|know|pass|take|exist|work|find)"
)
_CLOSE = 0.88
"""From which likeness on a word is a class's name with a slip of the pen."""


def told_missing(view: View, symptom: Symptom) -> Iterator[Missing]:
    """Yield the argument that a text tells to be gone, where a record of a library that is told bears it out.

    Nothing where the text shows an error line, which says more than words do.
    """
    name = next((symptom.captured[group] for group in _GROUPS if symptom.captured.get(group)), "")
    if any(error.kind != "said" for error in view.facts.errors) or _LOGGED.search(symptom.text):
        return
    for library in _libraries(view, symptom, name):
        record = load_record(view.matrix.folder, library)
        if record and (found := _lost(view, record, symptom, name)):
            owner, spans = found
            wanted = Wanted(Lack.KEYWORD, symptom, name, owner=owner)
            yield Missing(record, f"{name} of {owner}()", spans, wanted, name=name, sure=False)


def tells_trouble(symptom: Symptom) -> bool:
    """True where such a line tells that something failed, not only that the argument went."""
    return _TROUBLE.search(symptom.text) is not None


def _libraries(view: View, symptom: Symptom, argument: str) -> list[str]:
    """Return the recorded libraries that the line names, else those listed, else those that renamed it."""
    words = {word.replace("_", "-") for word in _WORD.findall(symptom.text.lower())}
    recorded = recorded_libraries(view.matrix.folder)
    named = [name for name in recorded if name in words and name in STACK]
    listed = [name for name in recorded if view.facts.distribution(name)]
    renamed = (row.library for row in view.matrix.rows(RenameRow) if row.old.endswith(f"({argument})"))
    return named or listed or sorted(set(renamed).intersection(recorded))


def _lost(view: View, record: Record, symptom: Symptom, name: str) -> tuple[str, Spans] | None:
    """Return the callable that takes the argument in other releases; None where none is meant."""
    told = [(owner, spans) for owner, spans in holding(record.keywords, name).items() if spans]
    lacking = [(owner, spans) for owner, spans in told if _lacks(view, record, symptom, spans)]
    words = _WORD.findall(" ".join(dict.fromkeys(one.text for one in view.facts.symptoms)))
    exact = [one for one in lacking if _is_named(one[0], words, 1)]
    meant = exact or [one for one in lacking if _is_named(one[0], words, _CLOSE)]
    lost = [one for one in lacking if _is_lost(view, record, symptom, one[1])]
    alone = lost if "_" in name and (view.facts.errors or tells_trouble(symptom)) else []
    known = [one for one in meant if one in lost] or exact or alone
    of_classes = [one for one in known if one[0].endswith(".__init__")] or known
    return min(of_classes, key=lambda one: (len(one[0]), one[0]), default=None)


def _lacks(view: View, record: Record, symptom: Symptom, spans: Spans) -> bool:
    version = view.version(record.library) or _told_release(record.library, symptom)
    if version is not None:
        return not record.has(spans, version)
    return spans[-1][1] < len(record.versions) - 1


def _is_lost(view: View, record: Record, symptom: Symptom, spans: Spans) -> bool:
    """True where the last release that takes it lies before the told one; without one, before the newest."""
    version = view.version(record.library) or _told_release(record.library, symptom)
    return spans[-1][1] < (record.place(version) if version else len(record.versions) - 1)


def _told_release(library: str, symptom: Symptom) -> Version | None:
    """Return the release of a library that stands behind its name in the line."""
    match = re.search(rf"(?i)\b{re.escape(library)}[ =v`]{{1,4}}(\d{{1,4}}\.[\d.]{{1,9}}\d)", symptom.text)
    return parse_version(match[1]) if match else None


def _is_named(owner: str, words: list[str], likeness: float) -> bool:
    """True where a word is the class or function, or so like it."""
    from difflib import get_close_matches

    class_, _, function = owner.partition(".")
    if function not in ("", "__init__") and function in words:
        return True
    camel = [word for word in words if word[:1].isupper()] if class_[:1].isupper() else words
    return bool(get_close_matches(class_, camel, 1, likeness))
