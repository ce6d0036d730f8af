"""Build facts of compiled packages, from small files and file names; nothing is imported."""

from __future__ import annotations

import re

from .elf import read_dynamic, read_strings
from .files import Unreadable, list_names, read_text
from .machine import Json, without_empty
from .typed import Any, Callable, Dict, Optional

ASSIGNED = r"^(\w+)\s*(?::[^=\n]+)?=\s*(?:'([^']*)'|\"([^\"]*)\"|(None|True|False))"
NEW_ABI, OLD_ABI = b"__cxx1112basic_string", b"RKSs"


def read_builds(distributions: Dict[str, Json]) -> Dict[str, Json]:
    """Return the build facts of those distributions that carry some."""
    found = {}
    for name, reader in READERS.items():
        site = distributions.get(name, {}).get("location")
        try:
            told = reader(site) if site else None
        except Unreadable as error:
            told = {"unknown": str(error)}
        except (ValueError, RecursionError, OSError) as error:
            told = {"unknown": "how %s was built: %s: %s" % (name, type(error).__name__, error)}
        if told:
            found[name] = told
    return found


def parse_assignments(text: str) -> Dict[str, Optional[str]]:
    """Read the plain string, None and boolean assignments of a generated Python file."""
    return {
        name: one or two or (None if word == "None" else word or "")
        for name, one, two, word in re.findall(ASSIGNED, text, re.MULTILINE)
    }


def read_torch(site: str) -> Json:
    """Return torch's version with its local part, its CUDA, its variant and its C++ ABI."""
    told = parse_assignments(read_text(site + "/torch/version.py") or "")
    if not told:
        return {}
    variant = None if told.get("cuda") else "rocm" if told.get("hip") else "cpu" if "cuda" in told else None
    return without_empty(
        {
            "version": told.get("__version__"),
            "cuda": told.get("cuda"),
            "hip": told.get("hip"),
            "git": told.get("git_version"),
            "variant": variant,
            "cxx11_abi": parse_abi(read_strings(site + "/torch/lib/libc10.so")),
        }
    )


def read_versioned(module: str) -> Callable[[str], Json]:
    """Return a reader of a module's `version.py`."""

    def reader(site: str) -> Json:
        told = parse_assignments(read_text("%s/%s/version.py" % (site, module)) or "")
        return without_empty({"version": told.get("__version__"), "cuda": told.get("cuda")})

    return reader


def read_bitsandbytes(site: str) -> Json:
    """Return the names of the libraries that this bitsandbytes carries, such as `cuda128` and `cpu`."""
    matches = [
        re.fullmatch(r"libbitsandbytes_(\w+)\.\w+", name) for name in list_names(site + "/bitsandbytes")
    ]
    return {"binaries": [match.group(1) for match in matches if match]}


def read_flash_attn(site: str) -> Json:
    """Return flash-attn's extension, the Python, CUDA major and C++ ABI it was built for."""
    name = next((one for one in list_names(site) if re.fullmatch(r"flash_attn_2_cuda.*\.so", one)), None)
    return read_extension(site, name) if name else {}


def read_extension(site: str, name: str) -> Json:
    """Return an extension's file, and what it was built for as far as the file tells."""
    path = site + "/" + name
    python = re.search(r"\.cpython-(\d)(\d+)", name)
    return without_empty(
        {
            "extension": name,
            "python": "%s.%s" % python.groups() if python else None,
            "cuda_major": read_cuda_major(path),
            "cxx11_abi": parse_abi(read_strings(path)),
        }
    )


def read_extensions(module: str) -> Callable[[str], Json]:
    """Return a reader of the names of a module's extensions and the CUDA major they were built for."""

    def reader(site: str) -> Json:
        folder = "%s/%s/" % (site, module)
        names = [name for name in list_names(folder) if name.endswith(".so")]
        majors = [major for major in (read_cuda_major(folder + name) for name in names) if major]
        return without_empty({"extensions": names, "cuda_major": majors[0] if majors else None})

    return reader


def read_cuda_major(path: str) -> Optional[int]:
    """Return the CUDA major whose runtime a library needs, or None when it names none."""
    dynamic = read_dynamic(path)
    match = re.search(r"libcudart\.so\.(\d+)", " ".join(dynamic.needed) if dynamic else "")
    return int(match.group(1)) if match else None


def parse_abi(symbols: bytes) -> Optional[bool]:
    """Return whether symbol names carry C++11's string, or None when no string occurs."""
    if NEW_ABI in symbols:
        return True
    return False if OLD_ABI in symbols else None


def read_xformers(site: str) -> Json:
    """Return what xformers was built with."""
    import json

    told = json.loads(read_text(site + "/xformers/cpp_lib.json") or "{}")
    versions, environ = _section(told, "version"), _section(told, "env")
    return without_empty(
        {
            "torch": _text(versions.get("torch")),
            "cuda": _cuda(versions.get("cuda")),
            "python": _text(versions.get("python")),
            "arch_list": (_text(environ.get("TORCH_CUDA_ARCH_LIST")) or "").replace(";", " ").split(),
        }
    )


def _section(told: Any, name: str) -> Json:
    part = told.get(name) if isinstance(told, dict) else None
    return part if isinstance(part, dict) else {}


def _text(value: Any) -> Optional[str]:
    return value if isinstance(value, str) else None


def _cuda(value: Any) -> Optional[str]:
    """Return `12.8` of xformers' 1208."""
    return "%d.%d" % (value // 100, value % 100) if isinstance(value, int) else _text(value)


def read_deepspeed(site: str) -> Json:
    """Return the torch and CUDA that deepspeed was installed with, and its prebuilt ops."""
    text = read_text(site + "/deepspeed/git_version_info_installed.py") or ""
    torch, ops = (re.search(name + r"\s*=\s*\{([^{}]*)\}", text) for name in ("torch_info", "installed_ops"))
    told = dict(re.findall(r"'(\w+)':\s*'([^']*)'", torch.group(1))) if torch else {}
    built = re.findall(r"'(\w+)': True", ops.group(1)) if ops else []
    return without_empty({"torch": told.get("version"), "cuda": told.get("cuda_version"), "built_ops": built})


READERS: Dict[str, Callable[[str], Json]] = {
    "torch": read_torch,
    "torchvision": read_versioned("torchvision"),
    "torchaudio": read_versioned("torchaudio"),
    "torchao": read_extensions("torchao"),
    "bitsandbytes": read_bitsandbytes,
    "flash-attn": read_flash_attn,
    "xformers": read_xformers,
    "vllm": read_extensions("vllm"),
    "deepspeed": read_deepspeed,
}
