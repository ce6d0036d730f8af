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


@fact
class PackageTraitRow(Row):
    """What is peculiar to a package when its errors are read."""

    KIND: ClassVar = "package_trait"

    name: Text
    """The package."""
    marks: tuple[str, ...] = ()
    """How the attributes begin that it puts on the modules and parameters of others."""
    from_source: bool = False
    """True where it is run from its repository as a rule, so that a development version says nothing."""
    refuses: tuple[Package, ...] = ()
    """Of whose releases it refuses to be imported beside those that it does not require."""
    engine: Text | None = None
    """The extra by which it is an engine: without, it is the client of one."""
    engine_parts: tuple[Package, ...] = ()
    """What is there for that extra alone."""
    over: Text | None = None
    """The distribution over whose modules it lays its own: a fork, a variant or a stranger of that name."""
    alike: bool = False
    """True where it is that one's code under the same numbers, built for another platform or backend."""
