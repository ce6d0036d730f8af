"""Empty CUDA libraries: what a wheel of torch needs to be loaded where no card is, at no cost of disk.

`put_in(folder, site)` writes into `folder` one shared object for each CUDA library that an extension under
`site` needs and does not bring; every function in it says "no device". Needs gcc, nm and readelf.
"""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import TypeAlias

_CUDA = re.compile(r"lib(cu|nv|nccl)[\w-]*\.so(\.\d+)*$")
_FUNCTION = re.compile(r"(__cuda|__nv|__fatbin|cu|nv|nccl)")
NO_DEVICE = 100
Wanted: TypeAlias = dict[str, dict[str, set[str]]]
"""By library and version of a symbol ("" for none): the functions."""
_CODE = """.globl {name}
.type {name},@function
{name}: {body}
ret
"""


def put_in(folder: Path, site: Path) -> list[str]:
    """Write the libraries that extensions under `site` need; return their names."""
    extensions = [p for p in site.rglob("*.so*") if p.is_file() and ".so" in p.suffixes]
    needed: set[str] = set()
    functions: Wanted = defaultdict(lambda: defaultdict(set))
    for extension in extensions:
        wanted = set(re.findall(r"NEEDED.*\[(.+?)\]", _told("readelf", "-d", str(extension))))
        # what lies in another folder (triton brings a libcupti of its own) is not found by the loader
        absent = {name for name in wanted if _CUDA.match(name) and not (extension.parent / name).exists()}
        if not absent and not any(_CUDA.match(name) for name in wanted):
            continue
        needed |= absent
        owners = _owners(extension)
        for line in _told(
            "nm", "-D", "--undefined-only", "--with-symbol-versions", str(extension)
        ).splitlines():
            name, _, version = line.split()[-1].partition("@")
            version = version.lstrip("@")
            if version or _FUNCTION.match(name):
                functions[owners.get(version, "")][version].add(name)
    folder.mkdir(parents=True, exist_ok=True)
    for name in sorted(needed):
        _build(folder, name, functions)
    return sorted(needed)


def _owners(extension: Path) -> dict[str, str]:
    """Return which library each version of a symbol is asked of (NVSHMEM names none by itself)."""
    owners, library = {}, ""
    for line in _told("readelf", "-V", str(extension)).splitlines():
        if file := re.search(r"File: (\S+)", line):
            library = file[1]
        elif version := re.search(r"Name: (\S+)  Flags", line):
            owners[version[1]] = library
    return owners


def _build(folder: Path, library: str, functions: Wanted) -> None:
    """Compile one library: its versioned functions, and all that have no version."""
    versions = functions.get(library, {})
    named = set().union(*versions.values()) if versions else set()
    plain = functions[""][""] - named
    lines = [".data", 'told: .asciz "no device"', ".text"]
    for name in sorted(named | plain):
        text = re.search(r"Get(Error|Status)(String|Name)|getErrorString", name)
        body = "lea told(%rip), %rax" if text else f"mov ${NO_DEVICE}, %eax"
        lines.append(_CODE.format(name=name, body=body))
    source, script = folder / f"{library}.s", folder / f"{library}.map"
    source.write_text("\n".join([*lines, '.section .note.GNU-stack,"",@progbits', ""]))
    script.write_text(
        "".join(f"{v} {{ global: {'; '.join(sorted(n))}; }};\n" for v, n in sorted(versions.items()))
    )
    asked = [f"-Wl,--version-script={script}"] if versions else []
    built = str(folder / library)
    subprocess.run(
        ["gcc", "-shared", "-nostdlib", f"-Wl,-soname,{library}", *asked, "-o", built, str(source)],
        check=True,
    )
    source.unlink()
    script.unlink()


def _told(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
