"""A fix as a document: what was done or would be, and what is left."""

from __future__ import annotations

from collections.abc import Iterator

from envdoctor.fixing.editing import Edited
from envdoctor.fixing.fixing import Fixed
from envdoctor.fixing.verifying import left
from envdoctor.report.diagnosis import TONES, root_causes
from envdoctor.report.document import Block, Code, Document, Row, Rows, Span, Tone, severities
from envdoctor.report.plan import plan_section

_TITLES: dict[str, tuple[str, Tone]] = {
    "nothing": ("nothing to mend", "ok"),
    "shown": ("not changed yet: --apply carries this out on a clone and exchanges the two", "warning"),
    "mended": ("mended", "ok"),
    "partly": ("changed, but something is left", "warning"),
    "undone": ("gone back", "ok"),
}


def fix_document(fixed: Fixed) -> Document:
    """Return what a fix did or would do."""
    title, tone = _TITLES[fixed.status]
    if fixed.status == "partly" and fixed.state is None:
        title = "not changed: no installer can mend what was found"
    if fixed.elsewhere and fixed.status == "shown":
        title = "for the machine that this tells of: run `envdoctor fix --apply` there, or type the commands"
    label = "Examined" if fixed.elsewhere else "Environment"
    blocks: list[Block] = [Rows((Row(label, fixed.environment), *_done(fixed)))]
    if fixed.plan and fixed.status in ("shown", "partly"):
        blocks.append(plan_section(fixed.plan, not fixed.elsewhere))
    if rows := tuple(_left(fixed)):
        blocks.append(Rows(rows))
    return Document(title, tone, tuple(blocks))


_EDITS: dict[str, tuple[str, Tone]] = {
    "nothing": ("nothing to change in the file", "ok"),
    "shown": ("not changed yet: --apply writes this", "warning"),
    "written": ("written", "ok"),
}


def edit_document(told: Edited) -> Document:
    """Return what a plan changes in a file."""
    title, tone = _EDITS[told.status]
    rows = [
        Row("File", told.file),
        *(Row("" if i else "By hand", text) for i, text in enumerate(told.notes)),
    ]
    rows += [Row("" if i else "Left", f.summary) for i, f in enumerate(left(told.after))]
    diff = (Code(told.diff, "diff"),) if told.diff else ()
    return Document(title, tone if told.exit_code == 0 else "warning", (Rows(tuple(rows)), *diff))


def _done(fixed: Fixed) -> Iterator[Row]:
    if fixed.state is None:
        return
    for place, change in enumerate(fixed.state.changes if fixed.status != "undone" else ()):
        yield Row("" if place else "Changed", change)
    if fixed.status == "undone":
        yield Row("Kept", f"state {fixed.state.number}: `--undo` goes forward again")
    else:
        yield Row("Kept", f"state {fixed.state.number}, as it was: `--undo` goes back to it")


def _left(fixed: Fixed) -> Iterator[Row]:
    judged = fixed.after or fixed.before
    if judged is None or fixed.status == "undone":
        return
    found = left(judged)
    label = "Found" if fixed.status == "shown" else "Left"
    for place, finding in enumerate(root_causes(found)):
        tone = TONES[finding.severity]
        words = (Span(tone, tone), "  ", Span(finding.id, "code"), f"  {finding.summary}")
        yield Row("" if place else label, words)
    if found:
        yield Row("", severities(found))
