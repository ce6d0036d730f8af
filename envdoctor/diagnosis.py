"""The assembly: facts are read and judged, remedies completed, and all of it becomes one value."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from envdoctor import __version__
from envdoctor.errors import InputError, Unavailable, nearest
from envdoctor.facts import MENDED, Facts, FactsFormatError, Symptom, Verdict, from_json
from envdoctor.facts.names import normalise
from envdoctor.findings import HERE, Diagnosis, Examined, Finding, Plan, Severity, exit_code
from envdoctor.matrix import Matrix, load_matrix
from envdoctor.rules import RULES, run_checks
from envdoctor.rules.view import View
from envdoctor.values import dataclass, replace

if TYPE_CHECKING:
    from envdoctor.smokes import SmokeReport


@dataclass(frozen=True, slots=True)
class PlanWish:
    """What a person wishes of the plan: packages that stay, and whether what moves goes as far as it can."""

    keep: Sequence[str] = ()
    newest: bool = False


def diagnose(
    sources: Sequence[str] = (),
    *,
    python: str | None = None,
    gpus: Sequence[str] = (),
    smoke: bool = False,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    fail_on: Severity = Severity.ERROR,
    code: Sequence[str] = (),
    online: bool = False,
    wish: PlanWish | None = None,
    driver: str | None = None,
    image: str | None = None,
) -> Diagnosis:
    """Diagnose this machine, or what `sources` (files, `-`) tell; `gpus` are declared in place of those read.

        diagnosis = envdoctor.diagnose(["report.txt"], gpus=["RTX 4090"])
        broken = diagnosis.exit_code == 1

    `code` names files and folders that are judged with it; `online` asks the package index, too: for the
    age of tracebacks and for what the plan downloads.
    `image` is a saved container image, `driver` the driver to judge for.
    Raises InputError for an unusable file, card, driver or selection, Unavailable when the matrix is missing.
    """
    probed = None if sources or image else start_probes(python, compared=False)
    matrix = load_matrix()
    facts = probed() if probed else _given_facts(sources, image, matrix)
    facts = _declared(facts, gpus, driver, matrix) if gpus or driver else facts
    if smoke:
        facts, _ = with_verdicts(facts, smoked_python(facts, sources, python), matrix)
    if online:
        from envdoctor.online import date_facts

        facts = date_facts(facts, matrix)
    examined = examined_of(facts, [*sources, *([image] if image else [])])
    diagnosis = diagnose_facts(
        facts, matrix, select=select, ignore=ignore, fail_on=fail_on, examined=examined, wish=wish
    )
    if online:
        from envdoctor.online import with_download

        diagnosis = with_download(diagnosis, matrix)
    diagnosis = _with_code(diagnosis, matrix, code, fail_on) if code else diagnosis
    return _with_own_note(diagnosis, fail_on) if examined.own and not (python or select) else diagnosis


def _given_facts(sources: Sequence[str], image: str | None, matrix: Matrix) -> Facts:
    """Return the facts of files and of a saved image together."""
    told = read_facts(sources, None, matrix) if sources else None
    if image is None:
        return told or Facts()
    from envdoctor.images.environment import read_image
    from envdoctor.pastes.merge import merge_facts

    found = read_image(image)
    return merge_facts([found, told]) if told else found


def _declared(facts: Facts, gpus: Sequence[str], driver: str | None, matrix: Matrix) -> Facts:
    """Return the facts with what a person declares in place of what was read."""
    from envdoctor.target.cards import declare_gpus
    from envdoctor.target.resolve import declare_driver

    return declare_driver(declare_gpus(facts, gpus, matrix), driver)


def _with_code(diagnosis: Diagnosis, matrix: Matrix, code: Sequence[str], fail_on: Severity) -> Diagnosis:
    """Add what breaks in code with what is installed; errors of it stand before warnings and notes."""
    from envdoctor.upgrading.findings import code_findings

    found = [*diagnosis.findings, *code_findings(diagnosis.facts, matrix, code)]
    findings = tuple(sorted(found, key=lambda finding: finding.severity.rank))
    return replace(diagnosis, findings=findings, exit_code=exit_code(findings, diagnosis.checks, fail_on))


def _with_own_note(diagnosis: Diagnosis, fail_on: Severity) -> Diagnosis:
    """Say that envdoctor's own environment was examined where it has no torch, and what lies near."""
    from envdoctor.nearby import own_environment_note

    note = own_environment_note(diagnosis.facts)
    if note is None:
        return diagnosis
    findings = (*diagnosis.findings, note)
    return replace(diagnosis, findings=findings, exit_code=exit_code(findings, diagnosis.checks, fail_on))


def examined_of(facts: Facts, sources: Sequence[str]) -> Examined:
    """Return what `sources` are in words; with none of them it is this machine that was looked at."""
    if sources:
        named = ("standard input" if source == "-" else source for source in sources)
        return Examined(", ".join(named), tuple(source for source in sources if source != "-"))
    prefix = facts.environment.prefix.get()
    own = prefix is not None and os.path.realpath(prefix) == os.path.realpath(sys.prefix)
    return Examined(HERE, own=own)


def diagnose_facts(
    facts: Facts,
    matrix: Matrix | None = None,
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    fail_on: Severity = Severity.ERROR,
    complete: bool = True,
    examined: Examined | None = None,
    wish: PlanWish | None = None,
) -> Diagnosis:
    """Judge `facts`; raises InputError for a selection that names no check.

        diagnosis = envdoctor.diagnose_facts(envdoctor.probe(), select=["DRIVER-TOO-OLD"])

    With `complete` the solver completes the likeliest remedies, so that following one breaks nothing else.
    """
    matrix = matrix or load_matrix()
    checks, findings = run_checks(facts, matrix, RULES, select, ignore)
    found = findings
    if complete and findings:
        from envdoctor.plan.advice import possible_findings

        found = possible_findings(findings, View(facts, matrix))
        findings = complete_findings(found, facts, matrix)
    plan = make_plan(found, facts, matrix, wish) if complete else None
    return Diagnosis(
        facts=facts,
        checks=checks,
        findings=findings,
        exit_code=exit_code(findings, checks, fail_on),
        tool_version=__version__,
        matrix_version=matrix.version,
        matrix_date=matrix.date,
        examined=examined or Examined(),
        plan=plan,
    )


def make_plan(
    findings: Sequence[Finding], facts: Facts, matrix: Matrix, wish: PlanWish | None = None
) -> Plan | None:
    """Return one set of changes for all findings; None where there are none.

    Raises InputError where something is to be kept that is not installed.
    """
    wish = wish or PlanWish()
    for name in wish.keep:
        if facts.distribution(normalise(name)) is None:
            near = nearest(name, facts.environment.distributions)
            raise InputError(f"--keep {name}: no such package is told of in what is examined{near}")
    if MENDED in facts.notes:
        findings = [finding for finding in findings if finding.severity is not Severity.NOTE]
    if not findings:
        return None
    if not any(f.severity is not Severity.NOTE or any(r.pins for r in f.remedies) for f in findings):
        return Plan(complete=True)  # worth knowing, and nothing to mend
    from envdoctor.plan.planning import plan_for

    return plan_for(findings, facts, matrix, keep=[normalise(n) for n in wish.keep], newest=wish.newest)


def complete_findings(findings: Sequence[Finding], facts: Facts, matrix: Matrix) -> tuple[Finding, ...]:
    """Return the findings with remedies that lead to no error, and commands for what was examined."""
    if any(remedy.pins or remedy.commands for finding in findings for remedy in finding.remedies):
        from envdoctor.plan.following import proven_remedies

        findings = proven_remedies(findings, facts, matrix)
    if not findings:
        return ()
    from envdoctor.plan.installing import aimed_findings

    return aimed_findings([_begun(finding) for finding in findings], facts)


def _begun(finding: Finding) -> Finding:
    """Return a finding of which the first remedy is no second one."""
    first = finding.remedies[0] if finding.remedies else None
    if first is None or not first.text.startswith("Or "):
        return finding
    text = first.text[3:4].upper() + first.text[4:]
    return replace(finding, remedies=(replace(first, text=text), *finding.remedies[1:]))


def read_facts(sources: Sequence[str], python: str | None, matrix: Matrix) -> Facts:
    """Return the facts of the given files, or of this machine when there are none; raises InputError."""
    if sources:
        from envdoctor.pastes import read_files

        return read_files(sources, matrix.lexicon)
    return start_probes(python)()


def start_probes(python: str | None, compared: bool = True) -> Callable[[], Facts]:
    """Start to read this machine, and return what waits for its facts; both raise, as `read_facts` does.

    What says something only beside other machines is left out unless it is to be `compared`.
    Raises InputError when the named interpreter is none, Unavailable when a probe's answer is no facts.
    """
    from envdoctor.probes import COMPARED, PROBES, NoInterpreter, start_reading

    probes = PROBES if compared else tuple(probe for probe in PROBES if probe.name not in COMPARED)
    try:
        answer = start_reading(python, probes=probes)
    except NoInterpreter as error:
        raise InputError(f"--python {python}: {error}") from None
    return lambda: _probed(answer())


def _probed(answer: Any) -> Facts:
    try:
        return from_json(answer)
    except FactsFormatError as error:
        raise Unavailable(f"a probe's answer is no fact of ours: {error}") from None


def smoked_python(facts: Facts, sources: Sequence[str], python: str | None) -> str:
    """Return the interpreter that smokes run in: never one that only a sent file names."""
    examined = None if sources else facts.environment.executable.get()
    return python or examined or sys.executable


def with_verdicts(facts: Facts, python: str, matrix: Matrix) -> tuple[Facts, SmokeReport]:
    """Run the smoke kernels in an interpreter; return the facts with verdicts, and the report."""
    from envdoctor.smokes import run_smokes

    report = run_smokes(python)
    verdicts = tuple(Verdict(r.label, r.outcome, "smoke", r.reason) for r in report.results)
    failed = [result for result in report.results if result.outcome not in ("passed", "skipped")]
    said = "\n".join(f"{result.reason or ''}\n{result.stderr_tail}" for result in failed)
    symptoms = (*facts.symptoms, *_symptoms_of(said, matrix))
    return replace(facts, verdicts=verdicts, symptoms=symptoms), report


def _symptoms_of(text: str, matrix: Matrix) -> tuple[Symptom, ...]:
    """Return the error lines recognised in what failing kernels said."""
    from envdoctor.pastes import parse_paste

    return parse_paste(text, "smoke", matrix.lexicon).symptoms
