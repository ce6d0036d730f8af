"""What each project's bug-report template asks, and what of a diagnosis answers it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from envdoctor.errors import InputError, nearest
from envdoctor.facts import Observed
from envdoctor.findings import Diagnosis
from envdoctor.matrix import Matrix, tables
from envdoctor.report.diagnosis import foot, key_rows, root_causes
from envdoctor.report.document import plain, severities
from envdoctor.report.facts import fact_rows, gpu_rows, gpu_words, version_words
from envdoctor.report.markup import code, commands_block, details, fenced, prose
from envdoctor.values import dataclass

_STEPS = (
    "*To be filled by you: the shortest code or command that shows it, and what you expected to matter.*\n"
)
_EXPECTED = "*To be filled by you: what should have happened.*\n"


@dataclass(frozen=True, slots=True)
class Report:
    """What a template is filled from; everything in it is redacted already."""

    diagnosis: Diagnosis
    logs: Mapping[str, str]


def find_tracker(matrix: Matrix, project: str) -> tables.TrackerRow:
    """Return the tracker of `project`; raises InputError naming the known ones."""
    trackers = matrix.rows(tables.TrackerRow)
    wanted = project.lower().replace("_", "-")
    for row in trackers:
        if wanted in (row.project, row.project.replace("-", ""), row.repository.lower()):
            return row
    known = sorted(row.project for row in trackers)
    told = nearest(project, known) or f" (known: {', '.join(known)})"
    raise InputError(f"--for {project}: no tracker is known of it{told}")


def only_the_user_can_fill(tracker: tables.TrackerRow) -> tuple[str, ...]:
    """Return the labels that facts do not answer: steps, expectations, check-boxes, whom to tag."""
    asked = (
        "reproduction",
        "reproduction_with_environment",
        "expected",
        "boxes",
        "nobody",
        "launcher",
        "model",
    )
    return tuple(f.label for f in tracker.field if f.fill.partition("_")[0] in asked)


def fill_field(field: tables.TemplateField, report: Report, room: int) -> str:
    """Return the Markdown that answers `field`, long texts cut to about `room` characters."""
    if field.fill.startswith("package:"):
        return _package(field.fill.partition(":")[2], report)
    if field.fill == "boxes":
        return "".join(f"- [ ] {option}\n" for option in field.options)
    return _FILLS[field.fill](report, room)


def plain_environment(diagnosis: Diagnosis) -> str:
    """Return the facts and key packages as lines of plain text, as an environment command prints them."""
    rows = [*fact_rows(diagnosis.facts), *key_rows(diagnosis)]
    return "\n".join(
        [*(f"{row.label}: {plain(row.words)}" for row in rows), foot(diagnosis).replace(" ", ": ", 1)]
    )


def _environment(report: Report, room: int) -> str:
    return fenced(cut_middle(plain_environment(report.diagnosis), max(2000, room)), "text")


def _environment_folded(report: Report, room: int) -> str:
    return details("The environment, by envdoctor", _environment(report, room))


def _problem(report: Report, room: int) -> str:
    causes = root_causes(report.diagnosis.findings)[:5]
    found = "".join(f"- **{f.severity.value}**: {prose(f.summary)} {prose(f.cause)}\n" for f in causes)
    what = "*To be filled by you: what you did, in a sentence.*\n\n"
    said = f"envdoctor found {severities(report.diagnosis.findings)}:\n\n{found}\n" if found else ""
    return what + said + _logs(report, room)


def _logs(report: Report, room: int) -> str:
    if not report.logs:
        return ""
    share = max(800, room // len(report.logs))
    return "\n".join(fenced(cut_middle(text, share), "text") for text in report.logs.values())


def _reproduction(report: Report, room: int) -> str:
    return _STEPS


def _reproduction_with_log(report: Report, room: int) -> str:
    return f"{_STEPS}\n{_logs(report, room)}"


def _reproduction_with_environment(report: Report, room: int) -> str:
    return f"{_STEPS}\n{_environment(report, room)}"


def _expected(report: Report, room: int) -> str:
    return _EXPECTED


def _os(report: Report, room: int) -> str:
    host = report.diagnosis.facts.host
    told = [str(fact.value) for fact in (host.distro, host.kernel, host.arch) if isinstance(fact, Observed)]
    return prose(", ".join(told)) + "\n" if told else "*Not told by the facts.*\n"


def _gpus(report: Report, room: int) -> str:
    gpus = report.diagnosis.facts.gpus
    driver = report.diagnosis.facts.driver.version
    if not isinstance(gpus, Observed) or not gpus.value:
        return "*No GPU is told by the facts.*\n"
    names = "".join(f"- {prose(gpu_words(gpu))}\n" for gpu in gpus.value[:16])
    return f"{names}\nNVIDIA CUDA{f', driver {driver.value}' if isinstance(driver, Observed) else ''}\n"


def _python(report: Report, room: int) -> str:
    python = report.diagnosis.facts.environment.python
    return f"{prose(python.value)}\n" if isinstance(python, Observed) else "*Not told by the facts.*\n"


def _package(name: str, report: Report) -> str:
    found = report.diagnosis.facts.distribution(name)
    return (
        f"{prose(name)} {prose(version_words(found))}\n" if found else f"*{name} is not among the facts.*\n"
    )


def _system(report: Report, room: int) -> str:
    facts = report.diagnosis.facts
    links = [g.nvlinks_up for g in facts.gpus.get() or () if g.nvlinks_up is not None]
    interconnect = f"{links[0]} NVLinks up a GPU" if links else "*only you can say*"
    count = len(facts.gpus.get() or ())
    gpus = ", ".join(plain(row.words) for row in gpu_rows(facts))
    return (
        f"- OS: {_os(report, room)}- GPU count and types: {count} ({prose(gpus)})\n"
        f"- Interconnects: {interconnect}\n- Python version: {_python(report, room)}"
        f"- Other: see the environment below\n"
    )


def _container(report: Report, room: int) -> str:
    container = report.diagnosis.facts.host.container
    return f"{prose(container.value)}\n" if isinstance(container, Observed) else "*Only you can say.*\n"


def _settings(report: Report, room: int) -> str:
    settings = report.diagnosis.facts.settings
    lines = "\n".join(f"{s.native_key or s.key}: {s.value}" for s in settings)
    return fenced(cut_middle(lines, max(1000, room)), "yaml") if lines else "*Please attach your config.*\n"


def _remedies(report: Report, room: int) -> str:
    remedies = [r for f in report.diagnosis.findings[:3] for r in f.remedies[:2]]
    lines = "".join(f"- {prose(r.text)}\n" for r in remedies)
    commands = commands_block(c for r in remedies for c in r.commands)
    return lines + (f"\n{commands}" if commands else "") or "*No remedy is known to envdoctor.*\n"


def _findings(report: Report, room: int) -> str:
    findings = report.diagnosis.findings[:5]
    lines = "".join(f"- {code(f.id)} (*{f.certainty.value}*): {prose(f.summary)}\n" for f in findings)
    return f"What envdoctor found:\n\n{lines}" if lines else "envdoctor found nothing wrong.\n"


def _ds_report(report: Report, room: int) -> str:
    return "By envdoctor, which reads the same facts:\n\n" + _environment(report, room)


def _said_by_user(report: Report, room: int) -> str:
    return "*Only you can say.*\n"


def _heading(report: Report, room: int) -> str:
    return ""


def _nothing(report: Report, room: int) -> str:
    return "*None.*\n"


_FILLS: Mapping[str, Callable[[Report, int], str]] = {
    "problem": _problem,
    "environment": _environment,
    "environment_folded": _environment_folded,
    "reproduction": _reproduction,
    "reproduction_with_log": _reproduction_with_log,
    "reproduction_with_environment": _reproduction_with_environment,
    "expected": _expected,
    "os": _os,
    "gpus": _gpus,
    "python": _python,
    "system": _system,
    "container": _container,
    "settings": _settings,
    "remedies": _remedies,
    "findings": _findings,
    "logs": _logs,
    "ds_report": _ds_report,
    "launcher": _said_by_user,
    "model": _said_by_user,
    "nobody": _said_by_user,
    "nothing": _nothing,
    "heading": _heading,
}


def cut_middle(text: str, room: int) -> str:
    """Return `text` within about `room` characters: its first third, what is left out, its last two."""
    if len(text) <= room:
        return text
    head, tail = text[: room // 3], text[len(text) - room * 2 // 3 :]
    head, tail = head[: head.rfind("\n") + 1] or head, tail[tail.find("\n") + 1 :] or tail
    left_out = len(text) - len(head) - len(tail)
    return f"{head.rstrip()}\n[… {left_out:,} characters left out …]\n{tail}"
