"""What a notebook shows of a value: the value asks the door for notebooks, which knows the reports."""

from __future__ import annotations


class Shown:
    """A value of the library that a notebook shows as its report."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        from importlib import import_module

        html: str = import_module("envdoctor.notebook").html_of(self)
        return html
