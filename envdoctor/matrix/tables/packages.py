"""Rows about packages themselves."""

from typing import ClassVar, Literal

from envdoctor.matrix.tables.row import Package, Row, Text, fact


@fact
class PackageRow(Row):
    """A package that rows may name though the package facts do not tell of it."""

    KIND: ClassVar = "package"

    name: Package
    """Its normalized name."""
    why: Text
    """Why the facts lack it."""


@fact
class StackRoleRow(Row):
    """What a stack is for; two that serve different ends may live in environments of their own."""

    KIND: ClassVar = "stack_role"

    name: Package
    """The package."""
    role: Literal["training", "serving"]
    """Its end."""
