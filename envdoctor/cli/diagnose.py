"""`envdoctor diagnose`: facts from here, from another interpreter or from a paste, judged."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from envdoctor.cli.output import colour_wanted, write

if TYPE_CHECKING:
    from envdoctor.facts import Facts
    from envdoctor.matrix import Matrix


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `diagnose`."""
    parser.add_argument(
        "--from",
        dest="sources",
        action="append",
        default=[],
        metavar="FILE",
        help="judge a paste, a recording or a bundle instead of this machine; - is standard input",
    )
    parser.add_argument("--python", metavar="PATH", help="the interpreter to examine")
    parser.add_argument(
        "--gpu", action="append", default=[], metavar="NAME", help="the card to judge for (repeatable)"
    )
    parser.add_argument(
        "--smoke", action="store_true", help="run the smoke kernels and judge with their verdicts"
    )
    parser.add_argument("--share", action="store_true", help="redact what identifies you or the machine")
    parser.add_argument(
        "--select", action="append", default=[], metavar="IDS", help="only these checks (commas)"
    )
    parser.add_argument(
        "--ignore", action="append", default=[], metavar="IDS", help="not these checks (commas)"
    )
    parser.add_argument("--fail-on", choices=("error", "warning", "note"), default="error", metavar="LEVEL")


def run(args: argparse.Namespace) -> int:
    """Diagnose and return the exit code."""
    from envdoctor.diagnosis import diagnose_facts
    from envdoctor.findings import Severity
    from envdoctor.matrix import load_matrix
    from envdoctor.report import render

    matrix = load_matrix()
    facts = declare_gpus(read_facts(args.sources, args.python, matrix), args.gpu, matrix)
    if args.smoke:
        facts = _with_verdicts(facts, args.python or facts.environment.executable.get() or sys.executable)
    diagnosis = diagnose_facts(
        facts,
        matrix,
        select=split_ids(args.select),
        ignore=split_ids(args.ignore),
        fail_on=Severity(args.fail_on),
    )
    if args.share:
        from envdoctor.bundle import redact_diagnosis

        diagnosis = redact_diagnosis(diagnosis)
    write(args, render(diagnosis, args.format, colour=colour_wanted(args)))
    return diagnosis.exit_code


def read_facts(sources: Sequence[str], python: str | None, matrix: Matrix) -> Facts:
    """Return the facts of the given files, or of this machine when there are none."""
    if sources:
        from envdoctor.pastes import key_names, read_files, symptom_patterns

        return read_files(sources, symptom_patterns(matrix.rows("symptom")), key_names(matrix.rows("key")))
    from envdoctor.facts import from_json
    from envdoctor.probes import read_machine

    return from_json(read_machine(python))


def declare_gpus(facts: Facts, names: Sequence[str], matrix: Matrix) -> Facts:
    """Return the facts with the declared cards in place of what was read; raises InputError."""
    if not names:
        return facts
    from envdoctor.facts import Observed
    from envdoctor.matrix.gpus import declared_gpu

    gpus = tuple(declared_gpu(matrix, name, index) for index, name in enumerate(names))
    return replace(facts, gpus=Observed(gpus, "--gpu"))


def split_ids(values: Sequence[str]) -> tuple[str, ...]:
    """Return the ids of repeated, comma-separated options."""
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def _with_verdicts(facts: Facts, python: str) -> Facts:
    from envdoctor.facts import Verdict
    from envdoctor.smokes import run_smokes

    report = run_smokes(python)
    verdicts = tuple(Verdict(r.op, r.outcome, "smoke", r.reason) for r in report.results)
    return replace(facts, verdicts=verdicts)
