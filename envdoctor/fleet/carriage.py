"""How the probe travels: one stream of bytes for the node's Python, and the framed lines it answers with."""

from __future__ import annotations

import base64
import importlib.util
import io
import marshal
import re
import shlex
import zipfile
import zlib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType

from envdoctor.fleet import landing
from envdoctor.probes.travel import build_zipapp

MAX_PARTS = 20_000
MAX_FACTS_BYTES = 16 << 20
_FRAME = re.compile(rb"envdoctor:([^:\s]{1,255}):(\d{1,6})/(\d{1,6}):([A-Za-z0-9+/=]+)\s*$")
_KEPT_NOISE = 400
VARIABLE = "ENVDOCTOR_CARGO_"
_MAX_VARIABLE = 100_000  # Linux takes 128 KiB
_HERE = "import sys; "  # within single quotes of the shell's: only double ones may follow
_START = """import marshal, sys
from _frozen_importlib_external import MAGIC_NUMBER
same = MAGIC_NUMBER == {magic!r}
code, source = sys.stdin.buffer.read({code}), sys.stdin.buffer.read({text})
exec(marshal.loads(code) if same else source)
{call}
"""
_AS_STDIN = (
    "import binascii, io, os; sys.stdin = io.TextIOWrapper(io.BytesIO(binascii.a2b_base64("
    f'str().join(os.environ.pop("{VARIABLE}" + str(n)) for n in range({{count}}))))); '
)


@dataclass(frozen=True, slots=True)
class Cargo:
    """What is sent to a node: the command that reads it and the bytes it reads."""

    command: str
    stdin: bytes

    def in_environment(self) -> tuple[str, dict[str, str]]:
        """Return the same as a command and the variables that it reads instead of its standard input."""
        text = base64.b64encode(self.stdin).decode()
        parts = [text[at : at + _MAX_VARIABLE] for at in range(0, len(text), _MAX_VARIABLE)]
        variables = {f"{VARIABLE}{number}": part for number, part in enumerate(parts)}
        return self.command.replace(_HERE, f"{_HERE}{_AS_STDIN.format(count=len(parts))}", 1), variables


def pack(limit_s: float, python: str | None, smokes: bytes = b"") -> Cargo:
    """Return the probe ready to travel; on the node it ends itself after `limit_s` seconds.

    `python` is the interpreter that runs it there and is examined; by default `python3` runs it and examines
    the active environment. With `smokes`, an archive of their room, it runs them too.
    """
    sources = read_sources()
    compiled = compile_modules()
    source = Path(landing.__file__).read_text(encoding="utf-8")
    sizes = f"{len(compiled)}, {len(sources)}"
    call = f"land({sizes}, same, {max(1, round(limit_s))}, {python!r}, {len(smokes)})"
    return program(source, call, compiled + sources + smokes, python, "-I -S")


def program(source: str, call: str, data: bytes, python: str | None, options: str = "-I") -> Cargo:
    """Return a program that a node's Python reads from its standard input, with the data it reads then.

    `call` starts it; in it `same` is whether that Python takes what ours compiles. With `-S` among its
    `options` that Python runs nothing of its packages' folders: no .pth file, no sitecustomize.
    """
    code = marshal.dumps(_stripped(compile(source, "landing", "exec", dont_inherit=True, optimize=2)))
    text = source.encode()
    start = _START.format(magic=importlib.util.MAGIC_NUMBER, code=len(code), text=len(text), call=call)
    command = f"{shlex.quote(python or 'python3')} {options} -c {shlex.quote(_reader(len(start)))}"
    return Cargo(command, start.encode() + code + text + data)


def _reader(size: int) -> str:
    """Return the line of Python that waits on the node for the rest."""
    return (
        f"{_HERE}sys.version_info >= (3, 8) or "
        "sys.exit('envdoctor: Python 3.8 or later is needed, this is ' + sys.version.split()[0]); "
        f"exec(sys.stdin.buffer.read({size}))"
    )


@cache
def read_sources() -> bytes:
    """Return the probes as one archive of sources, for any Python and for children that a probe starts."""
    buffer = io.BytesIO()
    build_zipapp(buffer)
    return buffer.getvalue()


@cache
def compile_modules() -> bytes:
    """Return the probes as this Python compiles them, by name, each with whether it is a package."""
    with zipfile.ZipFile(io.BytesIO(read_sources())) as archive:
        texts = {name: archive.read(name) for name in archive.namelist() if name != "__main__.py"}
    return zlib.compress(marshal.dumps({_module(n): _compiled(n, text) for n, text in texts.items()}), 9)


def _module(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _compiled(file: str, source: bytes) -> tuple[bool, CodeType]:
    """Return whether a file is a package's, and its code without docstrings."""
    code = compile(source, file, "exec", dont_inherit=True, optimize=2)
    return file.endswith("/__init__.py"), _stripped(code)


def _stripped(code: CodeType) -> CodeType:
    """Return code without its table of lines, two fifths of what would travel."""
    inner = tuple(_stripped(one) if isinstance(one, CodeType) else one for one in code.co_consts)
    return code.replace(co_linetable=b"", co_consts=inner)


@dataclass(slots=True)
class Frames:
    """Collects one node's framed lines, in any order, among whatever else it says."""

    _parts: dict[int, bytes] = field(default_factory=dict)
    _total: int = 0
    noise: bytes = b""

    def add(self, line: bytes) -> None:
        """Take one line."""
        match = _FRAME.search(line)
        if match is None:
            self.noise = (self.noise + line.strip() + b" ")[:_KEPT_NOISE] if line.strip() else self.noise
            return
        number, total = int(match[2]), int(match[3])
        if 0 < number <= total <= MAX_PARTS:
            self._total = total
            self._parts[number] = match[4]

    @property
    def complete(self) -> bool:
        """True once every part is there."""
        return 0 < self._total == len(self._parts)

    def text(self) -> bytes | None:
        """Return the facts' text, or None when parts are missing or damaged."""
        if not self.complete:
            return None
        try:
            packed = base64.b64decode(
                b"".join(self._parts[n] for n in range(1, self._total + 1)), validate=True
            )
            unpacker = zlib.decompressobj()
            text = unpacker.decompress(packed, MAX_FACTS_BYTES)
        except (ValueError, KeyError, zlib.error):
            return None
        return text if unpacker.eof else None


def frame_node(line: bytes) -> str | None:
    """Return the node that a framed line names, or None for any other line."""
    match = _FRAME.search(line)
    return match[1].decode("utf-8", "replace") if match else None
