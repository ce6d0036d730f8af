"""What code uses of libraries, as values: names, arguments and members, with their places."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from envdoctor.rules.interface_lookup import DISTINCT
from envdoctor.values import NamedTuple


class Kind(Enum):
    """The ways in which code leans on a library's interface."""

    IMPORT = "import"
    MODULE = "module"
    PATH = "path"
    KEYWORD = "keyword"
    POSITION = "position"
    MEMBER = "member"
    STAR = "star"
    NAME = "name"
    OVERRIDE = "override"
    LOOSE = "loose"
    KEY = "key"
    CALL = "call"
    SETTING = "setting"
    VARIABLE = "variable"
    REQUIREMENT = "requirement"
    CAUGHT = "caught"
    ASKED = "asked"
    COMPARED = "compared"
    DECORATED = "decorated"


NAMED = frozenset((Kind.IMPORT, Kind.STAR, Kind.MODULE, Kind.PATH))
"""Uses that name what they are of, whole."""
WHOSEVER = frozenset((Kind.KEY, Kind.ASKED))
"""Uses that only what stands around them makes a library's."""
OWNERLESS = WHOSEVER | {Kind.LOOSE, Kind.CALL}
"""Uses of which the path does not tell the library."""


class Place(NamedTuple):
    """Where something stands: line (from 1), and first and last column in bytes (from 0)."""

    line: int
    start: int
    end: int


ALL = "**"
"""Stands for arguments of any name."""
TELLING = 9
"""Letters from which the name of an argument tells whose it is."""


def is_telling(argument: str) -> bool:
    """True for an argument whose name tells whose it is: a long one, or one with an underscore before it."""
    return len(argument) >= DISTINCT or (argument[:1] == "_" and argument[:2] != "__")


class Condition(NamedTuple):
    """A question about the release of a library, by its module or distribution: `transformers >= 5`."""

    library: str
    operator: str
    version: str

    def turned(self) -> Condition:
        """Return the question that holds where this one does not."""
        turned = {">=": "<", "<": ">=", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
        return self._replace(operator=turned[self.operator])


@dataclass(frozen=True, slots=True)
class Use:
    """One use. `path` is the module of an import, else the dotted path of what is used or called.

    Nothing tells whose a loose one is: `path` is the method that a keyword is given to, empty for a member.
    A key is an argument on its way: `path` is the function that hands it on, empty for a dictionary.
    What is asked for is a text that may name a class, where names are asked for that only a run tells.
    A setting is a key among others that look like one framework's; a requirement names a release.
    """

    kind: Kind
    path: str
    place: Place
    name: str = ""
    """The imported name, the keyword or the member."""
    count: int = 0
    """Arguments given by position; of an overriding method those that it takes, at most."""
    guarded: bool = False
    """True under a condition or a handler that cares for its absence."""
    warns: bool = False
    """True where a handler of every error alone cares for its absence: of a warning that tells nothing."""
    modules: bool = False
    """True where the absence of the whole module is cared for."""
    when: tuple[Condition, ...] = ()
    """The questions about releases below which it stands: it is met where all hold."""
    unsure: bool = False
    """True where no run may miss it: what has a default, an annotation, an import that may fail."""
    given: frozenset[str] = frozenset()
    """The arguments that an overriding method takes, or that a call gives (`name`, and `name=value`).

    `name=` is one of an overriding method that has a default.

    `name()` is a method that an overriding one calls on `self`. Of a key, those beside it in its dictionary.
    """
    receiver: str = ""
    """The last name of what a method is called on."""
    made: frozenset[str] = frozenset()
    """The libraries whose callables made what a method is called on, as far as told; `.`: one's own."""
    statement: Place | None = None
    """The first line of the import statement it stands in."""
    instead: frozenset[tuple[str, str]] = frozenset()
    """The imports of the same library (module, name) that are tried where it fails, or before it."""


@dataclass(slots=True)
class Read:
    """What was read of one text: its uses, where imported names are written, and what was not followed."""

    uses: list[Use] = field(default_factory=list)
    written: dict[str, list[Place]] = field(default_factory=dict)
    """Where a name stands that was imported without another, by its dotted path."""
    unfollowed: int = 0
    defined: set[str] = field(default_factory=set)
    """The names of functions, classes and attributes that the text itself makes."""
