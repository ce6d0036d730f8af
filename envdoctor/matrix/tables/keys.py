"""Rows that lead the keys of frameworks to the common settings."""

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Literal

from envdoctor.matrix.tables.row import Bound, Row, SettingName, Text, fact

Framework = Literal[
    "transformers", "trl", "peft", "bitsandbytes", "accelerate", "deepspeed", "vllm", "llamafactory",
    "ms-swift", "axolotl", "unsloth", "weclone", "torchrun",
]  # fmt: skip


@fact
class KeyRow(Row):
    """What a framework calls a setting, and which of its values mean what."""

    KIND: ClassVar = "key"

    framework: Literal[Framework, "any"]
    """Whose key it is; `any`: what people write in tables and reports."""
    native: Text
    """The framework's own key, dotted where it is nested."""
    canonical: SettingName
    """The common name."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Native values to common ones; where it stands, other values tell nothing (`*`: any, `=`: as it is)."""
    versions: Bound = "*"
    """The releases of the framework that have the key."""
