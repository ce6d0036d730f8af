"""Installed distributions, read fast: folder names, the headers of METADATA, and who installed them."""

from __future__ import annotations

import os
import re

from .files import Unreadable, list_entries, list_names, read_blocks, read_bytes, read_start, read_text
from .machine import Json, without_empty
from .typed import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

EXTRA = re.compile(r"\bextra\s*(==|in\b)|==\s*extra\b")
LIBRARY = rb"\.so(?:\.\d+)*$"
NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,250}[A-Za-z0-9])?")
VERSION = re.compile(r"[A-Za-z0-9.!+_*-]{1,200}")
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
    unread: List[str]
    complete: bool = True


def normalize(name: str) -> str:
    """Return a distribution's name as indexes compare it."""
    name = name.replace("_", "-").replace(".", "-").lower()
    return re.sub("-+", "-", name) if "--" in name else name


def read_site(site: str) -> Site:
    """Return what is installed in one packages folder, and what of it could not be read."""
    try:
        everything = list_entries(site)
    except Unreadable as error:
        return Site({}, [], [str(error)], False)
    entries = sorted(entry for entry in everything if entry.isprintable())
    present = set(entries)
    found: Dict[str, List[Json]] = {}
    unread: List[str] = []
    nameless = []
    for one in _read_all(site, entries, unread):
        if NAME.fullmatch(one.get("name", "")):
            found.setdefault(normalize(one["name"]), []).append(one)
        else:
            nameless.append("%s in %s names no distribution" % (ascii(one["source"]), site))
    for name, module in KEY_MODULES.items():
        for one in found.get(name, ()):
            _guarded(unread, _check_files, site, module, present, one)
    problems = nameless + [_leftover(site, entry) for entry in entries if entry.startswith("~")]
    if len(everything) > len(entries):
        problems.append("%d names that cannot be printed, in %s" % (len(everything) - len(entries), site))
    return Site(found, problems, unread)


def _leftover(site: str, entry: str) -> str:
    return "left behind by an interrupted install or uninstall: %s in %s" % (entry, site)


def _read_all(site: str, entries: List[str], unread: List[str]) -> Iterator[Json]:
    for entry in entries:
        reader = next((read for suffix, read in READERS.items() if entry.endswith(suffix)), None)
        if reader is None or entry.startswith("~"):
            continue
        try:
            one = reader(site, entry)
        except Unreadable as error:
            unread.append(str(error))
            one = _by_name(site, entry, str(error))
        if one:
            yield one


def _by_name(site: str, entry: str, problem: str) -> Json:
    """Return what the mere name of an entry tells of a distribution."""
    name, _, version = re.sub(r"(-py\d\.\d+)?\.[a-z-]+$", "", entry).partition("-")
    told = {"name": normalize(name), "version": fit(version, VERSION), "source": entry, "location": site}
    return without_empty(dict(told, problems=[problem]))


def _guarded(unread: List[str], act: Callable[..., None], *arguments: Any) -> None:
    try:
        act(*arguments)
    except Unreadable as error:
        unread.append(str(error))


def read_dist_info(site: str, entry: str) -> Json:
    """Return the distribution of a `NAME-VERSION.dist-info` folder."""
    folder = site + "/" + entry
    name, _, version = entry[: -len(".dist-info")].partition("-")
    told = read_headers(folder + "/METADATA")
    told_name, told_version, unfit = _fitting(told)
    problems = unfit if told else ["%s holds no METADATA" % entry]
    installer = (read_start(folder + "/INSTALLER", 64) or b"").decode("utf-8", "replace").strip() or None
    if installer in ("pip", "uv") and not os.path.exists(folder + "/RECORD"):
        problems.append("%s holds no RECORD, so that it can be neither checked nor uninstalled" % entry)
    editable, origin = parse_direct_url(read_text(folder + "/direct_url.json", 65536))
    return without_empty(
        {
            "name": normalize(told_name or name),
            "source": entry,
            "version": told_version or fit(version, VERSION),
            "location": site,
            "installer": installer,
            "editable": editable or None,
            "origin": "conda" if installer == "conda" else origin,
            "requires": told and told[2],
            "problems": problems,
        }
    )


def read_egg_info(site: str, entry: str) -> Json:
    """Return the distribution of an `.egg-info` file or folder."""
    path = site + "/" + entry
    told = read_headers(path + "/PKG-INFO" if os.path.isdir(path) else path)
    stem = re.sub(r"-py\d\.\d+$", "", entry[: -len(".egg-info")])
    name, _, version = stem.partition("-")
    told_name, told_version, problems = _fitting(told)
    values = {
        "version": told_version or fit(version, VERSION),
        "location": site,
        "requires": told and told[2],
    }
    return without_empty(dict(values, name=normalize(told_name or name), source=entry, problems=problems))


Headers = Tuple[Optional[str], Optional[str], List[str]]


def fit(text: Optional[str], pattern: "re.Pattern[str]") -> Optional[str]:
    """Return a text that is what it should be, else None."""
    return text if text and pattern.fullmatch(text) else None


def _fitting(told: Optional[Headers]) -> Tuple[Optional[str], Optional[str], List[str]]:
    """Return name and version of headers where they are such; where not, the folder's name must tell them."""
    values = (told or (None, None))[:2]
    name, version = fit(values[0], NAME), fit(values[1], VERSION)
    problems = [
        "its METADATA tells what is no %s: %s" % (what, ascii(text[:60]))
        for what, text, fitting in (("name", values[0], name), ("version", values[1], version))
        if text and not fitting
    ]
    return name, version, problems


def read_egg_link(site: str, entry: str) -> Optional[Json]:
    """Return the editable distribution that an old `.egg-link` file points to, or None."""
    lines = (read_text(site + "/" + entry, 4096) or "").splitlines()
    folder = lines[0].strip() if lines else ""
    info = next((name for name in list_names(folder) if name.endswith(".egg-info")), None)
    if info is None:
        return None
    return dict(read_egg_info(folder, info), editable=True, origin="file", source=entry)


def read_headers(path: str) -> "Optional[Headers]":
    """Return name, version and requirements (without extras) of a METADATA's headers; None without a file."""
    data = _read_until_blank(path)
    if data is None:
        return None
    return parse_headers(data)


def parse_headers(data: bytes) -> "Headers":
    """Read name, version and the requirements that hold without extras."""
    text = "\n" + data.decode("utf-8", "replace")
    asked = [rest.partition("\n")[0] for rest in text.split("\nRequires-Dist:")[1:]]
    plain = [one.strip() for one in asked if "extra" not in one or not _needs_extra(one)]
    return _first(text, "\nName:"), _first(text, "\nVersion:"), plain


def _needs_extra(requirement: str) -> bool:
    return " extra ==" in requirement or EXTRA.search(requirement) is not None


def _first(text: str, key: str) -> Optional[str]:
    """Return the first value of a header that holds one, or None."""
    values = (rest.partition("\n")[0].strip() for rest in text.split(key)[1:])
    return next(filter(None, values), None)


def _read_until_blank(path: str) -> Optional[bytes]:
    """Return a file's headers, reading no more of its description than the last block holds."""
    data = read_start(path, CHUNK)
    end = _end_of_headers(data or b"")
    if data is None or end >= 0:
        return data and data[:end]
    data = b""
    for block in read_blocks(path, CHUNK):
        data += block
        end = _end_of_headers(data)
        if end >= 0 or len(data) >= MAX_HEADERS:
            break
    return data if end < 0 else data[:end]


def _end_of_headers(data: bytes) -> int:
    """Return where the first blank line begins, or -1."""
    end = data.find(b"\n\n")
    other = data.find(b"\n\r\n", 0, end if end >= 0 else len(data))
    return end if other < 0 else other


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
    record = read_bytes("%s/%s/RECORD" % (site, one["source"]), 1 << 20) or b""
    gone = [
        name.decode("utf-8", "replace")
        for name in recorded_libraries(record)[:64]
        if not os.path.exists(os.fsencode(site) + b"/" + name)
    ]
    if gone:
        _add_problem(one, "files it recorded are missing: " + ", ".join(gone[:3]))


def _add_problem(one: Json, problem: str) -> None:
    one["problems"] = [*one.get("problems", []), problem]


def recorded_libraries(record: bytes) -> List[bytes]:
    """Return the shared objects that a RECORD names, but for quoted names."""
    names = (line.partition(b",")[0] for line in record.split(b"\n") if b".so" in line)
    return [name for name in names if re.search(LIBRARY, name[-80:]) and not name.startswith(b'"')]


READERS: Dict[str, Callable[[str, str], Optional[Json]]] = {
    ".dist-info": read_dist_info,
    ".egg-info": read_egg_info,
    ".egg-link": read_egg_link,
}
