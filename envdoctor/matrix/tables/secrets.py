"""Rows about secrets: what issued ones look like, and the words that stand beside any."""

from typing import Annotated, ClassVar

from envdoctor.matrix import forms
from envdoctor.matrix.tables.row import Row, Text, fact


@fact
class SecretFormatRow(Row):
    """One issuer's format of a token."""

    KIND: ClassVar = "secret_format"

    kind: Annotated[str, forms.SECRET_KIND]
    """The name of the placeholder that stands for it."""
    hints: tuple[Text, ...]
    """Literals one of which stands in every token."""
    pattern: Annotated[str, forms.REGEX]
    """The token; its group `v` where only a part is secret."""
    lead: int = 0
    """How far after the token's start a hint stands at most; with any, long words are searched."""
    fixed: bool = False
    """Every token has one length: one may go over a line break without the next line's first word."""
    mixed: bool = False
    """Only what holds letters and digits counts."""
    drawn: bool = False
    """Only what reads as drawn counts."""
    follow: str = ""
    """Beside letters, digits, `_` and `-`: what a token of any length may go on with."""
    fold: bool = False
    """Hints are in lower case and stand for any case."""


@fact
class SecretWordRow(Row):
    """What people of one language write beside a secret."""

    KIND: ClassVar = "secret_word"

    language: Text
    """Its code, or `field` for words of every language's programs."""
    strong: tuple[Text, ...] = ()
    """Words whose value is a secret: `password`."""
    weak: tuple[Text, ...] = ()
    """Words whose value is one when it reads so: `token`."""
    between: tuple[Text, ...] = ()
    """Words that may stand between such a word and its value: `is`."""
