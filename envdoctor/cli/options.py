"""Options that several commands share, and how one is declared in a line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, TypeAlias

Group: TypeAlias = argparse._ActionsContainer
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
