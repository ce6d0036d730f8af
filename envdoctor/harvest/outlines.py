"""A module without the bodies of its functions, which do not run when it is imported: a fifth of the work."""

from __future__ import annotations

import ast

from envdoctor.python_source import parse_python

_FUNCTIONS = (b"def ", b"async def ")


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
    kept, lines, at = list[bytes](), source.split(b"\n"), 0
    while at < len(lines):
        bare = lines[at].lstrip()
        indent = lines[at][: len(lines[at]) - len(bare)]
        if not bare.startswith(_FUNCTIONS):
            kept.append(lines[at])
            at += 1
            continue
        start = _after_head(lines, at)
        # a colon before a `#` within a text would be no end, but then what is left is no Python
        is_head = lines[start - 1].partition(b"#")[0].rstrip().endswith(b":")
        end = _after_body(lines, start, len(indent)) if is_head else start
        body = b"\n".join(lines[start:end])
        if start == end or body.count(b'"""') % 2 or body.count(b"'''") % 2:
            end = start
        kept += lines[at:start]
        kept += [b"%s ..." % indent, *(b"" for _ in range(end - start - 1))] if end > start else ()
        at = end
    return b"\n".join(kept)


def _after_head(lines: list[bytes], at: int) -> int:
    """Return the line after a function's head: the first in which its brackets are closed."""
    depth = 0
    for place in range(at, len(lines)):
        line = lines[place]
        depth += sum(map(line.count, (b"(", b"[", b"{"))) - sum(map(line.count, (b")", b"]", b"}")))
        if depth <= 0:
            return place + 1
    return len(lines)


def _after_body(lines: list[bytes], at: int, indent: int) -> int:
    """Return the line after what stands further in than a function does."""
    while at < len(lines):
        bare = lines[at].lstrip()
        if bare and len(lines[at]) - len(bare) <= indent and not bare.startswith(b"#"):
            break
        at += 1
    return at
