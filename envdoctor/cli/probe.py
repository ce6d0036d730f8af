"""`envdoctor probe`: this machine's facts as JSON and nothing else."""

from __future__ import annotations

import argparse

from envdoctor.cli.output import write
from envdoctor.cli.parsing import add_flag
from envdoctor.errors import InputError, Unavailable
from envdoctor.report import as_json

EXAMPLES = (
    ("this machine's facts", ""),
    ("another environment's", "--python .venv/bin/python"),
    ("to judge it elsewhere", "-o facts.json"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--python", metavar="PATH", help="the interpreter or environment to examine")
    add_flag(parser, "--share", "redact what identifies you or the machine")


def run(args: argparse.Namespace) -> int:
    """Write the facts; raises InputError when the named interpreter is none, Unavailable for unread parts."""
    from envdoctor.probes import NoInterpreter, read_machine

    try:
        facts = read_machine(args.python)
    except NoInterpreter as error:
        raise InputError(f"--python: {error}") from None
    if args.share:
        from envdoctor.bundling.sharing import make_redactor, redact_plain
        from envdoctor.facts import from_json

        facts = redact_plain(facts, make_redactor(from_json(facts)))
    write(args, as_json(facts))
    if unread := "; ".join(f"{part}: {why}" for part, why in facts.get("unread", {}).items()):
        raise Unavailable(f"not known: {unread}")
    return 0
