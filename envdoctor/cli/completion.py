"""`envdoctor completion`: what a shell needs to complete commands, options and their values."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from envdoctor.cli.output import write
from envdoctor.errors import Unavailable

EXAMPLES = (
    ("bash, for this user", "bash -o ~/.local/share/bash-completion/completions/envdoctor"),
    ("zsh, into a folder of $fpath", "zsh -o ~/.zfunc/_envdoctor"),
    ("fish", "fish -o ~/.config/fish/completions/envdoctor.fish"),
)
FILES = frozenset(("FILE", "PATH", "DIR", "FILE.zip"))
"""What stands for a path in an option's help."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `completion`."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")


def run(args: argparse.Namespace) -> int:
    """Write the shell's script."""
    try:
        import shtab
    except ModuleNotFoundError:
        raise Unavailable("shtab is missing: completion needs `pip install shtab`") from None
    from envdoctor.cli import build_whole_parser

    parser = build_whole_parser()
    for action in _actions(parser):
        if action.metavar in FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    write(args, shtab.complete(parser, shell=args.shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield every action of a parser and of its sub-commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _actions(inner)
