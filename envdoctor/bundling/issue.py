"""`report.md`: what the maintainer asks first, then the rest, always short enough for an issue."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from urllib.parse import quote

from envdoctor.bundling.trackers import (
    Report,
    cut_middle,
    fill_field,
    plain_environment,
)
from envdoctor.findings import Diagnosis
from envdoctor.matrix import tables
from envdoctor.report.diagnosis import (
    broken_rows,
    check_rows,
    finding_blocks,
    finding_section,
    foot,
    key_rows,
    package_list,
)
from envdoctor.report.document import Row, Rows, Text, severities, visible
from envdoctor.report.facts import fact_rows
from envdoctor.report.markdown import draw_blocks
from envdoctor.report.markup import code, details, fenced, prose
from envdoctor.values import NamedTuple

_BUDGET = 60_000
"""UTF-16 units, never fewer than code points: the trackers take 65,536 characters."""
TITLE_LIMIT = 256
LINK_LIMIT = 7_500
"""Bytes of a prefilled link; the server refuses 8,192."""
_ROOMS = (24_000, 12_000, 6_000, 3_000, 1_200)
_FIELD_ROOMS = (6_000, 3_000, 1_200)


class Step(NamedTuple):
    """One shorter form of a section; of all steps those that matter least are taken first."""

    matters: int
    text: str


class Section(NamedTuple):
    """A part of the report in its whole form, and its shorter forms in order."""

    whole: str
    shorter: tuple[Step, ...] = ()


def compose(report: Report, tracker: tables.TrackerRow | None = None, limit: int = _BUDGET) -> str:
    """Return the report in Markdown, at most `limit` UTF-16 units long."""
    return fit(list(_sections(report, tracker)), limit)


def length(text: str) -> int:
    """Return the length of `text` in UTF-16 units, by which a browser counts."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def fit(sections: list[Section], limit: int) -> str:
    """Return the sections within `limit`, shortened where it matters least, cut at the end if it must be."""
    forms = [section.whole for section in sections]
    steps = sorted(
        (
            (step.matters, i, j)
            for i, section in enumerate(sections)
            for j, step in enumerate(section.shorter)
        ),
    )
    total = sum(length(form) + 1 for form in forms)
    for _, i, j in steps:
        if total <= limit:
            break
        text = sections[i].shorter[j].text
        if length(text) < length(forms[i]):
            total += length(text) - length(forms[i])
            forms[i] = text
    return cut_end("\n".join(form for form in forms if form), limit)


def cut_end(text: str, limit: int) -> str:
    """Return `text` cut after a line within `limit`, with its last code block and folded section closed."""
    if length(text) <= limit:
        return text
    room = max(0, limit - 400)
    kept = text[:room]
    while length(kept) > room:
        kept = kept[: len(kept) - max(1, length(kept) - room)]
    kept = kept[: kept.rfind("\n") + 1]
    fence = _open_fence(kept)
    closing = f"{fence}\n" if fence else ""
    closing += "\n</details>\n" * max(0, kept.count("<details>\n") - kept.count("</details>\n"))
    return (f"{kept}{closing}\n*Cut here: the whole is in the archive.*\n")[:limit]


def _open_fence(text: str) -> str:
    fence = ""
    for line in text.splitlines():
        ticks = line[: len(line) - len(line.lstrip("`"))]
        if fence:
            fence = "" if line.strip("`") == "" and len(ticks) >= len(fence) else fence
        elif len(ticks) >= 3:
            fence = ticks
    return fence if len(fence) < 300 else ""


def _sections(report: Report, tracker: tables.TrackerRow | None) -> Iterator[Section]:
    if tracker:
        for field in tracker.field:
            yield _field_section(field, report, tracker.kind)
        yield Section("---\n\n## envdoctor\n")
    else:
        yield Section(f"# envdoctor: {severities(report.diagnosis.findings)}\n")
    yield _findings(report.diagnosis)
    yield _headed("Facts", _rows(fact_rows(report.diagnosis.facts)), Step(70, ""))
    key = _rows(key_rows(report.diagnosis)) or "None known.\n"
    facts = report.diagnosis.facts
    listed = details(
        f"All {len(facts.environment.distributions)} packages", draw_blocks([package_list(facts)])
    )
    yield _headed(
        "Packages", f"{key}\n{listed if facts.environment.distributions else ''}", Step(10, key), Step(75, "")
    )
    yield from _logs(report)
    yield _headed("Checks", _checks(report.diagnosis), Step(20, ""))


def _rows(rows: Sequence[Row]) -> str:
    return draw_blocks([Rows(tuple(rows))]) if rows else ""


def _checks(diagnosis: Diagnosis) -> str:
    rows = (*check_rows(diagnosis.checks), *broken_rows(diagnosis.checks))
    return draw_blocks([Rows(rows), Text(foot(diagnosis))])


def _headed(heading: str, text: str, *shorter: Step) -> Section:
    steps = tuple(Step(s.matters, f"## {heading}\n\n{s.text}" if s.text else "") for s in shorter)
    return Section(f"## {heading}\n\n{text}", steps)


def _field_section(field: tables.TemplateField, report: Report, kind: str) -> Section:
    # A form turns its labels into headings of the third level; a Markdown template has them in bold.
    heading = f"**{field.label}**" if kind == "markdown" else f"### {field.label}"
    heading = f"## {field.label}" if field.type == "heading" else heading

    def form(room: int) -> str:
        return f"{heading}\n\n{fill_field(field, report, room)}"

    return Section(
        form(_FIELD_ROOMS[0]), tuple(Step(85 + i * 8, form(room)) for i, room in enumerate(_FIELD_ROOMS[1:]))
    )


def _findings(diagnosis: Diagnosis) -> Section:
    findings = diagnosis.findings
    brief = "".join(f"- {code(f.id)}: {prose(f.summary)}\n" for f in findings[:40])
    worst = draw_blocks([finding_section(f) for f in findings[:3]])
    whole = draw_blocks(finding_blocks(findings)) or "No check found anything wrong.\n"
    return _headed("Findings", whole, Step(65, f"{worst}\n{brief}"), Step(90, brief), Step(99, ""))


def _logs(report: Report) -> Iterator[Section]:
    for name, text in report.logs.items():

        def form(room: int, name: str = name, text: str = text) -> str:
            return details(f"Log: {prose(name)}", fenced(cut_middle(text, room), "text"))

        yield Section(form(_ROOMS[0]), _log_steps(form))


def _log_steps(form: Callable[[int], str]) -> tuple[Step, ...]:
    return (*(Step(30 + i * 10, form(room)) for i, room in enumerate(_ROOMS[1:])), Step(80, ""))


def issue_link(report: Report, tracker: tables.TrackerRow) -> str:
    """Return a link that opens a new issue with title and fields filled, within 7,500 bytes."""
    base = f"https://github.com/{tracker.repository}/issues/new?"
    found = report.diagnosis.findings
    title = f"{tracker.title.partition(' Please')[0]} {visible(found[0].summary) if found else ''}"
    filled = {"template": tracker.template, "title": " ".join(title.split())[: TITLE_LIMIT - 56]}
    link = base + "&".join(f"{name}={quote(value)}" for name, value in filled.items() if value)
    for name, texts in _link_values(report, tracker):
        for text in texts:
            addition = f"&{quote(name)}={quote(text)}"
            if len(link) + len(addition) <= LINK_LIMIT:
                link += addition
                break
    return link


def _link_values(report: Report, tracker: tables.TrackerRow) -> Iterator[tuple[str, list[str]]]:
    environment = plain_environment(report.diagnosis)
    if tracker.kind != "form":
        sections = list(_sections(report, tracker))
        yield "body", [*(fit(sections, limit) for limit in (4000, 2500, 1500)), environment[:600]]
        return
    for field in tracker.field:
        if field.id and field.type != "checkboxes":
            yield field.id, [cut_middle(fill_field(field, report, room), room) for room in (2500, 1200, 500)]
