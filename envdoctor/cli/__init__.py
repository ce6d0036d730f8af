"""The front door: finds the command, parses, runs, and turns errors into exit codes."""

from __future__ import annotations

import argparse
import gc
import importlib
import sys
from collections.abc import Sequence
from typing import get_args

from envdoctor import __version__
from envdoctor.cli.output import complain, drop_output, never_fail_to_encode, open_closed_streams
from envdoctor.cli.parsing import Help, Parser, examples, usage
from envdoctor.errors import EnvdoctorError
from envdoctor.report import Format, Gathered, Judged, Pinned, Reported, Tested, Told
from envdoctor.values import NamedTuple

GARBAGE_THRESHOLD = 200_000
"""A command lives for tenths of a second; collecting as often as Python does costs a tenth of that."""


class Command(NamedTuple):
    """A sub-command: its module under `envdoctor.cli`, its help, and its formats (default first)."""

    module: str
    help: str
    formats: tuple[Format, ...] = get_args(Told)


COMMANDS: dict[str, Command] = {
    "diagnose": Command(
        "diagnose",
        "say what is wrong with this machine, a recording or a pasted report, and why",
        get_args(Judged),
    ),
    "fix": Command(
        "fix", "show one plan for all that is found, carry it out safely, or undo it", get_args(Reported)
    ),
    "pin": Command(
        "pin",
        "solve for versions that work together on a card, a driver and a Python",
        get_args(Pinned),
    ),
    "why-not": Command("why_not", "say what forbids a version, with sources", get_args(Reported)),
    "upgrade": Command(
        "upgrade",
        "say what breaks in code when requirements change, and what to install",
        get_args(Reported),
    ),
    "memory": Command("memory", "predict the peak GPU memory of a run", get_args(Reported)),
    "profile": Command(
        "profile",
        "choose the fastest memory-safe setting and write it for a framework",
        get_args(Reported),
    ),
    "smoke": Command(
        "smoke", "run tiny kernels that prove, op by op, that this environment computes", get_args(Tested)
    ),
    "bundle": Command("bundle", "write a redacted archive to attach to a bug report"),
    "fleet": Command("fleet", "probe many nodes and answer for the cluster", get_args(Gathered)),
    "watch": Command(
        "watch", "run a command untouched, foretell what ends it, explain its end", get_args(Reported)
    ),
    "probe": Command("probe", "print this machine's facts as JSON", (Format.JSON,)),
    "matrix": Command("matrix", "show, update and verify the compatibility matrix"),
    "rules": Command("rules", "list every check, or explain one"),
    "completion": Command("completion", "write what a shell completes these commands with", (Format.TEXT,)),
    "mcp": Command("mcp", "serve these answers to an assistant (Model Context Protocol)", (Format.JSON,)),
}


def build_parser(command: str | None, alone: bool = False) -> argparse.ArgumentParser:
    """Return the parser; only the chosen command's module is imported, and `alone` it is the only one."""
    parser = Parser(
        prog="envdoctor",
        description="Says what is wrong with a GPU machine's LLM stack, and what mends it.",
        formatter_class=Help,
    )
    parser.add_argument("--version", action="version", version=f"envdoctor {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, prog="envdoctor")
    for name, entry in COMMANDS.items():
        chosen = name == command
        if alone and not chosen:
            continue
        sub = subparsers.add_parser(name, help=entry.help, add_help=chosen, formatter_class=Help)
        if chosen:
            _fill(sub, name, entry)
    return parser


def build_whole_parser() -> argparse.ArgumentParser:
    """Return the parser with every command filled, for completion and for the pages."""
    parser = Parser(prog="envdoctor", formatter_class=Help)
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", prog="envdoctor")
    for name, entry in COMMANDS.items():
        _fill(subparsers.add_parser(name, help=entry.help, formatter_class=Help), name, entry)
    return parser


def _fill(parser: argparse.ArgumentParser, name: str, entry: Command) -> None:
    module = importlib.import_module(f"envdoctor.cli.{entry.module}")
    said = entry.help[0].upper() + entry.help[1:]
    parser.description = f"{said}.\n\n{examples(name, module.EXAMPLES)}"
    module.add_arguments(parser)
    formats = [format.value for format in entry.formats]
    how = f"{', '.join(formats)} (default: {formats[0]})"
    parser.add_argument("--format", metavar="FORMAT", choices=formats, default=formats[0], help=how)
    parser.add_argument("-o", "--output", metavar="FILE", help="write there instead of standard output")
    parser.add_argument("-q", "--quiet", action="store_true", help="nothing on standard error but errors")
    parser.add_argument("--no-color", action="store_true", help="no colour (NO_COLOR is honoured too)")
    parser.usage = usage(name, parser)
    parser.set_defaults(run=module.run)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    gc.set_threshold(GARBAGE_THRESHOLD)
    open_closed_streams()
    never_fail_to_encode()
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = next((a for a in arguments if not a.startswith("-")), None)
    arguments, wrapped = _parted(arguments) if command == "watch" else (arguments, [])
    try:
        alone = command in COMMANDS and arguments[0] == command
        args = build_parser(command, alone).parse_args(arguments)
        args.wrapped = wrapped
        args.format = Format(args.format)
        return _run(args)
    except EnvdoctorError as error:
        complain(f"envdoctor: {_one_line(error)}")
        return error.exit_code
    except BrokenPipeError:
        drop_output()
        return 0
    except KeyboardInterrupt as error:
        return int(getattr(error, "exit_code", 130))


def _run(args: argparse.Namespace) -> int:
    if args.quiet or not sys.stderr.isatty():
        return int(args.run(args))
    from envdoctor.cli.waiting import Waiting

    with Waiting(args) as args.waiting:
        return int(args.run(args))


def _parted(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return our own words and those after `--`, which are another program's and not ours to read."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return list(arguments[:at]), list(arguments[at + 1 :])


def _one_line(error: Exception) -> str:
    from envdoctor.report.document import visible

    return visible(str(error)).replace("\n", " ")
