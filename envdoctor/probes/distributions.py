"""Installed distributions, read fast: folder names, the headers of METADATA, and who installed them."""

from __future__ import annotations

import os
import re

from .files import Unreadable, list_entries, list_names, read_blocks, read_bytes, read_text
from .machine import Json, without_empty
from .typed import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

HEADER = re.compile(rb"^(Requires-Dist|Name|Version):([^\n]*)", re.MULTILINE)
BLANK_LINES = (b"\n\n", b"\n\r\n")
EXTRA = re.compile(rb"\bextra\s*(==|in\b)|==\s*extra\b")
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
    problems = [] if told else ["%s holds no METADATA" % entry]
    problems += _unfit(told)
    installer = (read_text(folder + "/INSTALLER", 64) or "").strip() or None
    if installer in ("pip", "uv") and not os.path.exists(folder + "/RECORD"):
        problems.append("%s holds no RECORD, so that it can be neither checked nor uninstalled" % entry)
    editable, origin = parse_direct_url(read_text(folder + "/direct_url.json", 65536))
    told_name, told_version, requires = told or (None, None, [])
    return without_empty(
        {
            "name": normalize(fit(told_name, NAME) or name),
            "source": entry,
            "version": fit(told_version, VERSION) or fit(version, VERSION),
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
    values = {
        "version": fit(told_version, VERSION) or fit(version, VERSION),
        "location": site,
        "requires": requires,
    }
    named = normalize(fit(told_name, NAME) or name)
    return without_empty(dict(values, name=named, source=entry, problems=_unfit(told)))


Headers = Tuple[Optional[str], Optional[str], List[str]]


def fit(text: Optional[str], pattern: "re.Pattern[str]") -> Optional[str]:
    """Return a text that is what it should be, else None."""
    return text if text and pattern.fullmatch(text) else None


def _unfit(told: Optional[Headers]) -> List[str]:
    """Return what of the headers is no name or no version, which then the folder's name must tell."""
    values = zip(("name", "version"), told or (), (NAME, VERSION))  # noqa: B905 (newer than Python 3.8)
    return [
        "its METADATA tells what is no %s: %s" % (what, ascii(text[:60]))
        for what, text, pattern in values
        if isinstance(text, str) and not pattern.fullmatch(text)
    ]


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
    told: Dict[bytes, List[str]] = {key: [] for key in (b"Name", b"Version", b"Requires-Dist")}
    for key, text in HEADER.findall(data):
        if b" extra ==" not in text and (b"extra" not in text or not EXTRA.search(text)):
            told[key].append(text.decode("utf-8", "replace").strip())
    name, version = (next(filter(None, told[key]), None) for key in (b"Name", b"Version"))
    return name, version, told[b"Requires-Dist"]


def _read_until_blank(path: str) -> Optional[bytes]:
    """Return a file's headers, reading no more of its description than the last block holds."""
    data: Optional[bytes] = None
    for block in read_blocks(path, CHUNK):
        data = (data or b"") + block
        ends = [at for at in map(data.find, BLANK_LINES) if at >= 0]
        if ends:
            return data[: min(ends)]
        if len(data) >= MAX_HEADERS:
            break
    return data


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
