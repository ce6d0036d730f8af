"""The command line: how an option is declared, three examples above them, one line for what is mistyped."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias

from envdoctor import lazy_re as re
from envdoctor.errors import InputError, nearest

_CHOICE = re.compile(
    r"(?:argument (?P<option>[^:]{1,80}): )?invalid choice: (?P<given>.{1,200}?)"
    r" \(choose from (?P<choices>.{1,900}?)\)"
)
_LACKING = re.compile(r"arguments are required: (--[\w-]+)$")
"""What is said where one option is missing."""


class Parser(argparse.ArgumentParser):
    """argparse's, but that a call it cannot take is an InputError of one line with the nearest names."""

    _given: Sequence[str] = ()

    def error(self, message: str) -> NoReturn:
        """Raise InputError; what is missing is told after what is mistyped, which may be the same."""
        found = _CHOICE.search(message)
        if found is None and "arguments are required" in message and (mistyped := self._mistyped()):
            raise InputError(self._unknown(mistyped))
        if (lacking := _LACKING.search(message)) and self._given and self._given[0][:1] != "-":
            raise InputError(f"{self._given[0]}: say what it is, {lacking[1]} {self._given[0]}")
        if found is None:
            raise InputError(f"{message} (see `{self.prog} --help`)")
        choices = re.findall(r"[\w.+-]+", found["choices"])
        raise InputError(_not_one_of(found["option"] or "", found["given"].strip("'"), choices))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as argparse does; raises InputError for an option that this command does not have."""
        self._given = args or ()
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            raise InputError(self._unknown(unknown[0]))
        return known, unknown

    def _get_option_tuples(self, option_string: str) -> list[Any]:
        """Return what a shortened option may mean, as argparse does; the singular of one means that one."""
        found: list[Any] = super()._get_option_tuples(option_string)
        plural = f"{option_string.partition('=')[0]}s"
        return [one for one in found if plural in one[0].option_strings] or found

    def _mistyped(self) -> str | None:
        names = (argument.partition("=")[0] for argument in self._given if argument.startswith("--"))
        known = tuple(self._option_string_actions)
        return next((name for name in names if not any(one.startswith(name) for one in known)), None)

    def _unknown(self, argument: str) -> str:
        if not argument.startswith("-"):
            hint = "; a file is given with --from" if "--from" in self._option_string_actions else ""
            return f"{argument}: one argument more than `{self.prog}` takes{hint}"
        option = argument.partition("=")[0]
        mine = [name for name in self._option_string_actions if name.startswith("--")]
        return f"{option}: `{self.prog}` has no such option{nearest(option, mine)}"


class Help(argparse.RawDescriptionHelpFormatter):
    """argparse's, but that it finds the width without `shutil`: a formatter is made for every option."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=columns() - 2)


def columns() -> int:
    """Return the width of standard output's terminal, as COLUMNS or the terminal tells; else 80."""
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told) > 0:
        return int(told)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ else 1).columns or 80
    except (ValueError, OSError):  # closed, or no terminal
        return 80


def _not_one_of(option: str, given: str, choices: Sequence[str]) -> str:
    near = nearest(given, choices)
    if option in ("", "COMMAND"):
        return f"{given}: no such command{near or '; there are ' + ', '.join(choices)}"
    return f"{option} {given}: none of {', '.join(choices)}{near}"


WIDTH = 80


def examples(command: str, lines: Sequence[tuple[str, str]]) -> str:
    """Return a command's examples as `--help` shows them: what each answers, and the call."""
    return "\n".join(f"  # {meaning}\n{_call(f'envdoctor {command} {call}')}" for meaning, call in lines)


def _call(call: str) -> str:
    """Return a call, a long one on lines that a shell reads as one."""
    lines = [""]
    for part in re.split(r" (?=-)", call.rstrip()):
        if lines[-1] and len(lines[-1]) + len(part) > WIDTH - 6:
            lines.append("")
        lines[-1] += f" {part}" if lines[-1] else part
    return " \\\n".join(f"  {'  ' if number else ''}{line}" for number, line in enumerate(lines))


def usage(command: str, parser: argparse.ArgumentParser) -> str:
    """Return the usage in a line: the options stand below, each with its meaning."""
    words = [_word(action) for action in parser._get_positional_actions()]
    return " ".join(("envdoctor", command, *words, "[options]")).replace("%", "%%")


def _word(action: argparse.Action) -> str:
    named = action.metavar if isinstance(action.metavar, str) else ""
    name = named or "|".join(map(str, action.choices or (action.dest,)))
    return {"?": f"[{name}]", "*": f"[{name}]...", "+": f"{name}..."}.get(str(action.nargs), name)


Group: TypeAlias = argparse._ActionsContainer
NAMES = ("full", "lora", "qlora", "freeze", "lisa", "badam", "ia3", "prompt", "prefix")
"""Methods of training: those of `envdoctor.memory.methods`, which costs more to load."""
TRAINED = "full, every weight; lora, adapters beside 16-bit weights; qlora, beside quantized ones"


def add(group: Group, name: str, metavar: str, help: str, **more: Any) -> None:
    """Declare an option with one value."""
    group.add_argument(name, metavar=metavar, help=help, **more)


def add_list(group: Group, name: str, metavar: str, help: str, **more: Any) -> None:
    """Declare an option that may be given again and again."""
    group.add_argument(name, metavar=metavar, help=help, action="append", default=[], **more)


def add_flag(group: Group, name: str, help: str) -> None:
    """Declare an option without a value."""
    group.add_argument(name, action="store_true", help=help)


def add_selection(group: Group) -> None:
    """Declare which checks count, from which severity on, and how much is shown."""
    add_list(group, "--select", "IDS", "only these checks (commas)")
    add_list(group, "--ignore", "IDS", "not these checks (commas)")
    add_flag(group, "--all", "show everything, fold nothing")
    levels = ("error", "warning", "note")
    add(
        group,
        "--fail-on",
        "LEVEL",
        "exit 1 from this on: error, warning, note",
        choices=levels,
        default="error",
    )


def split_list(values: Sequence[str]) -> tuple[str, ...]:
    """Return the parts of repeated, comma-separated options."""
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def seconds(text: str) -> float:
    """Return a time above 0; raises ArgumentTypeError."""
    try:
        told = float(text)
    except ValueError:
        told = 0.0
    if not 0 < told < 1e6:
        raise argparse.ArgumentTypeError(f"{text}: not a number of seconds above 0")
    return told
