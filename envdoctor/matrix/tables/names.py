"""Rows about names in Python: attributes that come and go, modules that are installed under other names."""

from typing import Annotated, ClassVar

from envdoctor.matrix import forms
from envdoctor.matrix.tables.row import Bound, Package, Row, Text, fact


@fact
class AttributeRow(Row):
    """An attribute that came or went with a release of a library."""

    KIND: ClassVar = "attribute"

    owner: Annotated[str, forms.REGEX]
    """The module, class or type that is asked, as the error line writes it."""
    names: tuple[str, ...]
    """The attributes."""
    library: Package | None = None
    """The library whose releases differ; none where only the hint helps."""
    having: Bound = "*"
    """Its releases that have the attribute."""
    hint: str = ""
    """What else to do."""
    asked_by: Package | None = None
    """The companion of torch that asks for it as it is imported, where it is newer than torch."""


@fact
class ImportNameRow(Row):
    """A module whose distribution has another name."""

    KIND: ClassVar = "import_name"

    module: Text
    """As it is imported."""
    distribution: Package
    """As it is installed."""
    install: str = ""
    """The command, where it is not on the index."""


@fact
class SubmoduleRow(Row):
    """A module that needs more than its distribution requires: code that imports it needs that as well."""

    KIND: ClassVar = "submodule"

    module: Text
    """As it is imported."""
    distribution: Package
    """Whose it is."""
    needs: Text
    """What has what it imports: a distribution, or the distribution's own extra (`NAME[EXTRA]`).

    A marker behind `;` tells where.
    """
    releases: Bound = "*"
    """The releases whose module needs it without requiring it."""


@fact
class GeneratedRow(Row):
    """Which releases of its runtime a generated module runs with."""

    KIND: ClassVar = "generated"

    generator: Text
    """What wrote it: `antlr`, `grpc`, `protobuf`."""
    made: Bound
    """The versions that it says of itself."""
    distribution: Package
    """The runtime."""
    needs: Text
    """Its releases that take such a module; `{made}` stands for the version."""


@fact
class SharedFolderRow(Row):
    """Folders that many distributions put modules into: that one is there tells nothing of another's."""

    KIND: ClassVar = "shared_folder"

    names: tuple[str, ...]
    """As they are imported."""


@fact
class CalledRow(Row):
    """How what a library makes is called in code where nothing else tells whose it is."""

    KIND: ClassVar = "called"

    form: Text
    """A class's name, with `*` for any letters; in small letters an instance's last word."""
    library: Package
    """Whose it is, in a text that uses the library."""
    base: str = ""
    """The library's class that it derives from, or is an instance of; none where only whose it is is told."""


@fact
class TakenRow(Row):
    """Arguments that one call takes, and that are handed to others, which refuse them."""

    KIND: ClassVar = "taken"

    arguments: tuple[Text, ...]
    """The arguments."""
    remedy: Text
    """Where they belong; `{name}` is the argument."""


@fact
class OwnModuleRow(Row):
    """How projects name modules of their own, which stand in no index."""

    KIND: ClassVar = "own_module"

    names: tuple[Text, ...]
    """Names, `*` for any letters."""


@fact
class RenameRow(Row):
    """A name, argument or member that goes by another one from a release on."""

    KIND: ClassVar = "rename"

    old: Text
    """As it was: `module.name`, `Callable(argument)`, `Class.member`; `def Class.method` overrides one.

    `Callable(argument=value|value)` are these values alone, `.method()` a method of whatever a text calls it
    on that uses the library, `.method().other()` what a text calls one after the other, whatever it uses.

    `except module.Error`: the errors that its functions raise are no longer these; `*` for any letters.

    `method() without argument|argument=value`: the answer is another unless one of these is given; with the
    path of a module's function before it, that one's alone; `for f()`: where the answer goes straight to f.

    `module.(name|name)` are these names, `module.(name|name)(argument)` an argument of each.

    `Callable() with more than argument|argument`: any other; `Callable(#0='text')`: that text, given first;
    `module.table[key]`: the key of a table of the module's own; `def Class.name(key)`: what a class inside
    of one that derives from it sets.
    """
    new: Text
    """What stands in its place: a name of the same kind, or what to write."""
    library: Package
    """The library whose release took the old one away."""
    since: Annotated[str, forms.VERSION] | None = None
    """The first release without it; none where the releases still take it and warn."""
    deprecated: Annotated[str, forms.VERSION] | None = None
    """The first release that warns of the old one, where it does before it goes."""
    answered: bool = False
    """True where the old name still brings the new one: no code has to change. `*` stands for any letters."""
