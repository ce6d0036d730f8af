"""`envdoctor mcp`: the answers as tools of an assistant, over standard input and output."""

from __future__ import annotations

import argparse

from envdoctor.cli.parsing import add, add_flag
from envdoctor.errors import Unavailable

EXAMPLES = (
    ("what an assistant is told to start", ""),
    ("for the environment of a project", "--python .venv/bin/python"),
    ("the package index and the Hub may be asked, too", "--online"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `mcp`."""
    add(parser, "--python", "PATH", "the interpreter to examine (default: the active environment's)")
    add_flag(parser, "--online", "look up what the package facts and the catalogue of models do not cover")


def run(args: argparse.Namespace) -> int:
    """Serve until standard input ends."""
    try:
        from envdoctor.serving.server import run_server
    except ModuleNotFoundError as error:
        raise Unavailable(
            f"{error.name} is missing or too old: the server needs `pip install 'envdoctor-gpu[mcp]'`"
        ) from None
    from envdoctor.serving.tools import Settings

    run_server(Settings(args.python, args.online))
    return 0
