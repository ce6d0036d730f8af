"""A diagnosis as one comment under an issue: what is certain, in our words, with a key to find it by."""

from __future__ import annotations

import re

from envdoctor.facts.quantities import counted
from envdoctor.findings import Certainty, Diagnosis, Finding, Severity
from envdoctor.report.document import Block, Document, Row, Rows, Section, Span, Text
from envdoctor.report.markdown import draw_markdown

KEY = "<!-- envdoctor:triage"
"""How the comment opens: the next run finds it by this and writes over it."""
SHOWN = 5
# What a reporter could have put into a name to reach somebody: mentions, links, HTML.
_ACTIVE = re.compile(r"@\w|://|\]\(|</?[a-zA-Z!]")


def draw_comment(diagnosis: Diagnosis) -> str:
    """Return the comment; its first line says how many findings it holds, so that none need be posted."""
    certain = [finding for finding in diagnosis.findings if _is_certain(finding)]
    known = {finding.id for finding in certain}
    roots = [finding for finding in certain if finding.consequence_of not in known]
    blocks: tuple[Block, ...] = tuple(map(_section, roots[:SHOWN]))
    if len(roots) > SHOWN:
        blocks += (Text(f"{counted(len(roots) - SHOWN, 'more finding')} left out here."),)
    told = "What the report itself proves; nothing here was guessed, and nothing was run."
    first = Text(told if roots else "Nothing is certain from what the report tells.")
    foot = f"envdoctor {diagnosis.tool_version}, matrix {diagnosis.matrix_version}; written by a program"
    document = Document("", "", (first, *blocks), foot)
    return f"{KEY} findings={len(roots)} -->\n{draw_markdown(document)}"


def _is_certain(finding: Finding) -> bool:
    return finding.certainty is Certainty.CERTAIN and finding.severity is not Severity.NOTE


def _section(finding: Finding) -> Section:
    rows = [Row("why", _ours(finding.cause))]
    for remedy in finding.remedies[:2]:
        label = "or" if len(rows) > 1 else "do"
        rows.append(Row(label, _ours(remedy.text), commands=tuple(map(_ours, remedy.commands))))
    seen = [f"{e.fact} ({e.source})" for e in finding.evidence if not e.fact.startswith("SYM-")]
    rows += [Row("seen", _ours(", ".join(dict.fromkeys(seen))))] if seen else []
    rows += [Row("see", source) for source in finding.sources[:2]]
    title = (Span(finding.severity.value, "strong"), "  ", Span(finding.id, "code"))
    return Section(title, (Text(Span(_ours(finding.summary), "strong")), Rows(tuple(rows))))


def _ours(text: str) -> str:
    """Return a text without what could reach somebody, though Markdown would show it as code anyway."""
    return re.sub(r"\S+", lambda word: "…" if _ACTIVE.search(word[0]) else word[0], text)
