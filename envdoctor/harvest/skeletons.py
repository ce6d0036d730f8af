"""The classes of a file by what they define themselves, found without parsing it: a tenth of the work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

_TEXT = re.compile(rb'"""(?:[^"]|"(?!""))*"""')
_CLASS = re.compile(rb"^class[ \t]{1,4}(?P<name>\w{1,100})(?P<bases>\([^()]*\))?[ \t]{0,4}:", re.MULTILINE)
_IMPORT = re.compile(rb"^from[ ][.\w]{1,200}[ ]import[ ](?:\([^()]+\)|[^\n(]{1,400})", re.MULTILINE)
_AT_TOP = re.compile(rb"^[^\s#)]", re.MULTILINE)
_OWN = re.compile(
    rb"^    (?:(?:async )?def (?P<method>\w{1,100})\("
    rb"|class (?P<inner>\w{1,100})\b|(?P<field>\w{1,100})[ ]?[:=](?!=))",
    re.MULTILINE,
)
_ON_SELF = re.compile(
    rb"^[ \t]+(?:if [^\n:]{1,200}:[ ])?self\.(?P<name>\w{1,100})[ \t]*(?::[^=\n]{1,200})?=(?!=)", re.MULTILINE
)
_REGISTERED = re.compile(rb"\bself\.(?:register_\w{1,30}|add_module)\(\s{0,40}[\"'](?P<name>\w{1,100})[\"']")
_MADE = re.compile(rb"^    def __init__\((?P<taken>[^()]*(?:\([^()]*\)[^()]*)*)\)", re.MULTILINE)
_MADE_UP = re.compile(rb"\b(?:setattr\(self|self\.__dict__)")
"""What puts members on an object that no file names."""
_KEYWORDS = frozenset((b"else", b"try", b"finally", b"if", b"for", b"with", b"while"))


@lru_cache(maxsize=2048)
def classes_of(source: bytes) -> bytes:
    """Return a text of a file's imports and classes, each with its own members and what `__init__` takes.

    Only what is indented by four spaces, as formatters write it, is read. Most files outlive a release.
    """
    bare = _TEXT.sub(b"0", source)
    imports = b"\n".join(one[0] for one in _IMPORT.finditer(bare))
    return b"\n".join((imports, *_skeletons(bare)))


def _skeletons(source: bytes) -> Iterator[bytes]:
    for found in _CLASS.finditer(source):
        end = _AT_TOP.search(source, found.end())
        body = source[found.end() : end.start() if end else len(source)]
        if _MADE_UP.search(body):
            yield b"@made(up)"
        yield b"class %b%b:" % (found["name"], found["bases"] or b"")
        yield from (b"    %b = 0" % name for name in dict.fromkeys(_members(body)) if name not in _KEYWORDS)
        if made := _MADE.search(body):
            yield b"    def __init__(%b): pass" % made["taken"]
        yield b"    pass"


def _members(body: bytes) -> Iterator[bytes]:
    for found in _OWN.finditer(body):
        name = found["method"] or found["inner"] or found["field"]
        if name != b"__init__":
            yield name
    yield from (found["name"] for found in _ON_SELF.finditer(body))
    yield from (found["name"] for found in _REGISTERED.finditer(body))
