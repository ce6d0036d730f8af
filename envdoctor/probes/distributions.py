"""Installed distributions, read fast: folder names, the headers of METADATA, and who installed them."""

from __future__ import annotations

import os
import re
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from .machine import Json, list_names, read_bytes, read_text, without_empty

HEADERS = (b"Requires-Dist:", b"Name:", b"Version:")
BLANK_LINES = (b"\n\n", b"\n\r\n")
EXTRA = re.compile(r"\bextra\s*(==|in\b)|==\s*extra\b")
CHUNK, MAX_HEADERS = 16384, 1 << 19
KEY_MODULES = {
    "torch": "torch",
    "torchvision": "torchvision",
    "transformers": "transformers",
    "accelerate": "accelerate",
    "bitsandbytes": "bitsandbytes",
    "peft": "peft",
    "deepspeed": "deepspeed",
    "flash-attn": "flash_attn",
    "xformers": "xformers",
    "vllm": "vllm",
    "triton": "triton",
    "numpy": "numpy",
}


class Site(NamedTuple):
    """What one packages folder holds: distributions by normalized name, as found, and what is left over."""

    distributions: Dict[str, List[Json]]
    problems: List[str]


def normalize(name: str) -> str:
    """Return a distribution's name as indexes compare it."""
    name = name.replace("_", "-").replace(".", "-").lower()
    return re.sub("-+", "-", name) if "--" in name else name


def read_site(site: str) -> Site:
    """Return what is installed in one packages folder."""
    entries = list_names(site)
    present = set(entries)
    found: Dict[str, List[Json]] = {}
    for one in _read_all(site, entries):
        found.setdefault(normalize(one["name"]), []).append(one)
    for name, module in KEY_MODULES.items():
        for one in found.get(name, ()):
            _check_files(site, module, present, one)
    return Site(found, [_leftover(site, entry) for entry in entries if entry.startswith("~")])


def _leftover(site: str, entry: str) -> str:
    return "left behind by an interrupted install or uninstall: %s in %s" % (entry, site)


def _read_all(site: str, entries: List[str]) -> Iterator[Json]:
    for entry in entries:
        if entry.startswith("~"):
            continue
        if entry.endswith(".dist-info"):
            yield read_dist_info(site, entry)
        elif entry.endswith(".egg-info"):
            yield read_egg_info(site, entry)
        elif entry.endswith(".egg-link"):
            linked = read_egg_link(site, entry)
            if linked:
                yield linked


def read_dist_info(site: str, entry: str) -> Json:
    """Return the distribution of a `NAME-VERSION.dist-info` folder."""
    folder = site + "/" + entry
    name, _, version = entry[: -len(".dist-info")].partition("-")
    told = read_headers(folder + "/METADATA")
    problems = [] if told else ["%s holds no METADATA" % entry]
    installer = (read_text(folder + "/INSTALLER", 64) or "").strip() or None
    if installer in ("pip", "uv") and not os.path.exists(folder + "/RECORD"):
        problems.append("%s holds no RECORD, so that it can be neither checked nor uninstalled" % entry)
    editable, origin = parse_direct_url(read_text(folder + "/direct_url.json", 65536))
    told_name, told_version, requires = told or (None, None, [])
    return without_empty(
        {
            "name": normalize(told_name or name),
            "source": entry,
            "version": told_version or version or None,
            "location": site,
            "installer": installer,
            "editable": editable or None,
            "origin": "conda" if installer == "conda" else origin,
            "requires": requires,
            "problems": problems,
        }
    )


def read_egg_info(site: str, entry: str) -> Json:
    """Return the distribution of an `.egg-info` file or folder."""
    path = site + "/" + entry
    told = read_headers(path + "/PKG-INFO" if os.path.isdir(path) else path)
    stem = re.sub(r"-py\d\.\d+$", "", entry[: -len(".egg-info")])
    name, _, version = stem.partition("-")
    told_name, told_version, requires = told or (None, None, [])
    values = {"version": told_version or version or None, "location": site, "requires": requires}
    return without_empty(dict(values, name=normalize(told_name or name), source=entry))


def read_egg_link(site: str, entry: str) -> Optional[Json]:
    """Return the editable distribution that an old `.egg-link` file points to, or None."""
    lines = (read_text(site + "/" + entry, 4096) or "").splitlines()
    folder = lines[0].strip() if lines else ""
    info = next((name for name in list_names(folder) if name.endswith(".egg-info")), None)
    if info is None:
        return None
    return dict(read_egg_info(folder, info), editable=True, origin="file", source=entry)


def read_headers(path: str) -> Optional[Tuple[Optional[str], Optional[str], List[str]]]:
    """Return name, version and requirements (without extras) of a METADATA's headers; None without a file."""
    data = _read_until_blank(path)
    if data is None:
        return None
    return parse_headers(data)


def parse_headers(data: bytes) -> Tuple[Optional[str], Optional[str], List[str]]:
    """Read name, version and the requirements that hold without extras."""
    name: Optional[str] = None
    version: Optional[str] = None
    requires: List[str] = []
    for line in data.split(b"\n"):
        if not line.startswith(HEADERS):
            continue
        key, _, text = line.decode("utf-8", "replace").partition(":")
        text = text.strip()
        if key == "Requires-Dist":
            if "extra" not in text or not EXTRA.search(text):
                requires.append(text)
        elif key == "Name":
            name = name or text
        else:
            version = version or text
    return name, version, requires


def _read_until_blank(path: str) -> Optional[bytes]:
    """Return a file's headers, reading no more of its description than the last block holds."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return None
    try:
        data = b""
        while len(data) < MAX_HEADERS:
            chunk = os.read(handle, CHUNK)
            data += chunk
            ends = [at for at in map(data.find, BLANK_LINES) if at >= 0]
            if ends:
                return data[: min(ends)]
            if len(chunk) < CHUNK:
                break
        return data
    except OSError:
        return None
    finally:
        os.close(handle)


def parse_direct_url(text: Optional[str]) -> Tuple[bool, Optional[str]]:
    """Return whether an install is editable, and its origin: `vcs`, `file` or `url`."""
    if not text:
        return False, None
    editable = re.search(r'"editable"\s*:\s*true', text) is not None
    if '"vcs_info"' in text:
        return editable, "vcs"
    return editable, "file" if re.search(r'"url"\s*:\s*"file:', text) else "url"


def _check_files(site: str, module: str, present: "set[str]", one: Json) -> None:
    """Add what is missing of a key package that is not editable: its module, or the libraries it recorded."""
    if one.get("editable"):
        return
    if module not in present and module + ".py" not in present:
        _add_problem(one, "its module %s is missing in %s" % (module, site))
        return
    record = read_bytes("%s/%s/RECORD" % (site, one["source"]), 1 << 20)
    names = re.findall(rb"^([^,\n\"]+\.so(?:\.\d+)*),", record or b"", re.MULTILINE)
    gone = [
        name.decode("utf-8", "replace")
        for name in names[:64]
        if not os.path.exists(os.fsencode(site) + b"/" + name)
    ]
    if gone:
        _add_problem(one, "files it recorded are missing: " + ", ".join(gone[:3]))


def _add_problem(one: Json, problem: str) -> None:
    one["problems"] = [*one.get("problems", []), problem]
