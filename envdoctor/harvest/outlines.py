"""A module without the bodies of its functions, which do not run when it is imported: a fifth of the work."""

from __future__ import annotations

import ast
import re
from functools import cache

from envdoctor.python_source import parse_python

_FUNCTION = re.compile(rb"^([ \t]*)(?:async[ ]+)?def ", re.MULTILINE)
_LINE = re.compile(rb"[^\n]*(?:\n|$)")
_ENDS_HEAD = re.compile(rb":[ \t\r]*(?:#[^\n]*)?\n$")


def parse_outline(source: bytes) -> ast.Module:
    """Return a module's syntax tree, each line where it was; raises SyntaxError for what is no Python."""
    try:
        return parse_python(outlined(source))
    except SyntaxError:
        return parse_python(source)


def outlined(source: bytes) -> bytes:
    """Return a module's text with `...` for the bodies of its functions.

    A body whose quotes do not pair, and what follows a head that does not end in a colon, is left as it is.
    """
    kept, done = list[bytes](), 0
    for function in _FUNCTION.finditer(source):
        if function.start() < done:
            continue
        indent = function[1]
        start = _after_head(source, function.start())
        if not _ENDS_HEAD.search(source, start - 200 if start > 200 else 0, start):
            continue
        next_ = _outside(len(indent)).search(source, start)
        end = next_.start() if next_ else len(source)
        lines = source.count(b"\n", start, end)
        quotes = source.count(b'"""', start, end) % 2 or source.count(b"'''", start, end) % 2
        if lines and not quotes:
            kept += (source[done:start], indent, b" ...", b"\n" * lines)
            done = end
    return b"".join((*kept, source[done:]))


@cache
def _outside(indent: int) -> re.Pattern[bytes]:
    """Return what finds a line, but for a comment, that stands no further in than a function does."""
    return re.compile(rb"^[ \t]{0,%d}[^ \t\r\n#]" % indent, re.MULTILINE)


def _after_head(source: bytes, at: int) -> int:
    """Return where the line after a function's head begins: the first in which its brackets are closed."""
    depth = 0
    while at < len(source):
        line = _LINE.match(source, at)
        assert line is not None  # it matches anything
        at, text = line.end(), line[0]
        depth += sum(map(text.count, (b"(", b"[", b"{"))) - sum(map(text.count, (b")", b"]", b"}")))
        if depth <= 0:
            break
    return at
