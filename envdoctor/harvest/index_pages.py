"""A project's page on a package index: its files, with what the index says of each.

The page is asked for as JSON (PEP 691) and read as JSON or as HTML (PEP 503), whichever comes. Upload times
and sizes that the page lacks are completed from the project's JSON beside the index, where there is one.
A page that makes no sense is refused as a whole; a file that makes no sense is left out and counted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin, urlsplit, urlunsplit

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from envdoctor.errors import Unavailable
from envdoctor.fetch import Fetched, Fetcher, NotFound
from envdoctor.probes.urls import plain_url

ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_PLAIN_URL = re.compile(r"https?://[a-z0-9.-]+(?::\d+)?(?:/[\w%+~=-][\w%+~=.-]*)+", re.ASCII)
"""A whole URL that joining to any page leaves as it is."""
_WHEEL = re.compile(r"(?![^-]{0,300}__)([\w.]+)-([^-]+)(?:-\d[^-]*)?-([^-]+-[^-]+-[^-]+)\.whl")
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|\+00:00)?")
_LONGEST_FILENAME = 300


@dataclass(frozen=True, slots=True)
class IndexFile:
    """One file of a release as its index lists it; `metadata_sha256` is "" when offered without a hash."""

    filename: str
    version: str
    url: str
    sha256: str | None = None
    requires_python: str | None = None
    yanked: bool = False
    uploaded: str | None = None
    size: int | None = None
    metadata_sha256: str | None = None

    @property
    def is_wheel(self) -> bool:
        """True for a wheel, False for a source distribution."""
        return self.filename.endswith(".whl")

    @property
    def source(self) -> str:
        """How a fact names the file it was read from."""
        return f"{'wheel' if self.is_wheel else 'sdist'}:{self.filename}"


@dataclass(frozen=True, slots=True)
class ProjectPage:
    """The files of one project; `left_out` counts those that are neither wheel nor sdist, or unreadable."""

    name: str
    files: tuple[IndexFile, ...]
    etag: str | None = None
    left_out: int = 0

    def releases(self) -> dict[str, tuple[IndexFile, ...]]:
        """Return the files by version, oldest version first."""
        grouped: dict[str, list[IndexFile]] = {}
        for file in self.files:
            grouped.setdefault(file.version, []).append(file)
        return {v: tuple(sorted(grouped[v], key=lambda f: f.filename)) for v in sorted(grouped, key=Version)}


def read_project_page(fetcher: Fetcher, index: str, name: str, etag: str | None = None) -> ProjectPage | None:
    """Return the page of `name` on `index`, or None when it is unchanged since `etag`.

    Raises NotFound when the index lacks the project, Unavailable when the page cannot be read or trusted.
    """
    name = checked_name(name)
    fetched = fetcher.get(f"{index.rstrip('/')}/{name}/", accept=ACCEPT, etag=etag)
    if fetched.not_modified:
        return None
    page = parse_page(name, fetched)
    if any(file.uploaded is None or file.size is None for file in page.files):
        page = replace(page, files=_completed(fetcher, index, page))
    return page


def read_releases(fetcher: Fetcher, index: str, name: str) -> dict[str, tuple[IndexFile, ...]]:
    """Return a project's files by version, oldest version first; raises NotFound, Unavailable."""
    page = read_project_page(fetcher, index, name)
    assert page is not None  # unchanged is only what was asked for by an etag
    return page.releases()


@dataclass(frozen=True, slots=True)
class Listing:
    """What a project's page lists, not yet looked at: thousands of files, few of which are wanted."""

    name: str
    url: str
    entries: Sequence[Mapping[str, Any]]

    def release(self, version: str) -> tuple[IndexFile, ...]:
        """Return the files of one release, none where there is no such."""
        near = [entry for entry in self.entries if version in str(entry.get("filename"))]
        return self._of(near, version) or self._of(self.entries, version)

    def _of(self, entries: Iterable[Mapping[str, Any]], version: str) -> tuple[IndexFile, ...]:
        files = _distinct(_file(self.name, self.url, entry) for entry in entries)
        return tuple(sorted((f for f in files if f.version == version), key=lambda f: f.filename))


def read_listing(fetcher: Fetcher, index: str, name: str) -> Listing:
    """Return what the page of a project lists; raises NotFound, Unavailable."""
    name = checked_name(name)
    fetched = fetcher.get(f"{index.rstrip('/')}/{name}/", accept=ACCEPT)
    return Listing(name, fetched.url, _entries(name, fetched))


def checked_name(name: str) -> str:
    """Return the canonical form of a project's name; raises Unavailable for what cannot be one."""
    canonical = str(canonicalize_name(name))
    if len(canonical) > 100 or not _NAME.fullmatch(canonical):
        raise Unavailable(f"{name[:60]!r} is not the name of a package")
    return canonical


def parse_page(name: str, fetched: Fetched) -> ProjectPage:
    """Return the page in `fetched`, JSON or HTML; raises Unavailable when it is neither or is another's."""
    raw = _entries(name, fetched)
    files = _distinct(filter(None, (_file(name, fetched.url, entry) for entry in raw)))
    if raw and not files and any(str(e.get("filename", "")).endswith((".whl", ".tar.gz")) for e in raw):
        raise Unavailable(f"{plain_url(fetched.url)}: none of its files belongs to {name}")
    return ProjectPage(name, files, fetched.etag, left_out=len(raw) - len(files))


def _entries(name: str, fetched: Fetched) -> list[dict[str, Any]]:
    text = _decoded(fetched)
    if "json" in fetched.content_type.lower() or text.lstrip()[:1] == "{":
        return _json_entries(name, fetched.url, text)
    return _html_entries(fetched.url, text)


def _decoded(fetched: Fetched) -> str:
    try:
        return fetched.body.decode("utf-8")
    except UnicodeDecodeError:
        raise Unavailable(f"{plain_url(fetched.url)}: the page is not text") from None


def _distinct(files: Iterable[IndexFile | None]) -> tuple[IndexFile, ...]:
    return tuple({file.filename: file for file in files if file}.values())


def _json_entries(name: str, url: str, text: str) -> list[dict[str, Any]]:
    try:
        page = json.loads(text)
        files = page["files"]
        if not isinstance(files, list) or not all(isinstance(f, dict) for f in files):
            raise TypeError
        if canonicalize_name(page.get("name", name)) != name:
            raise Unavailable(f"{plain_url(url)}: the page is that of another project")
        return files
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Unavailable(f"{plain_url(url)}: not a project page: its JSON is malformed") from None


def _html_entries(url: str, text: str) -> list[dict[str, Any]]:
    if "<" not in text[:2000]:
        raise Unavailable(f"{plain_url(url)}: not a project page: neither HTML nor JSON")
    parser = _Anchors()
    parser.feed(text)
    if not parser.complete and (parser.opened or not parser.entries):
        raise Unavailable(f"{plain_url(url)}: not a whole project page: it ends too early")
    return parser.entries


class _Anchors(HTMLParser):
    """Collects the links of a page as entries shaped like those of the JSON page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.entries: list[dict[str, Any]] = []
        self.opened = False
        self.complete = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.opened = self.opened or tag == "html"
        if tag == "a":
            self.entries.append(_anchor_entry(dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.complete = self.complete or tag == "html"


def _anchor_entry(attributes: Mapping[str, str | None]) -> dict[str, Any]:
    href, _, fragment = (attributes.get("href") or "").partition("#")
    algorithm, _, digest = fragment.partition("=")
    metadata = attributes.get("data-core-metadata", attributes.get("data-dist-info-metadata"))
    return {
        "filename": urlsplit(href).path.rpartition("/")[2].replace("%2B", "+").replace("%2b", "+"),
        "url": href,
        "hashes": {algorithm: digest} if digest else {},
        "requires-python": attributes.get("data-requires-python"),
        "yanked": "data-yanked" in attributes,
        "upload-time": attributes.get("data-upload-time"),
        "core-metadata": _html_metadata(metadata),
    }


def _html_metadata(value: str | None) -> dict[str, str] | bool:
    algorithm, _, digest = (value or "").partition("=")
    return {algorithm: digest} if digest else value is not None and value != "false"


def _file(name: str, page_url: str, entry: Mapping[str, Any]) -> IndexFile | None:
    filename, url = entry.get("filename"), entry.get("url")
    if not isinstance(filename, str) or not isinstance(url, str) or len(filename) > _LONGEST_FILENAME:
        return None
    version = release_of(name, filename)
    absolute = _absolute(page_url, url)
    if version is None or absolute is None:
        return None
    hashes = entry.get("hashes")
    return IndexFile(
        filename=filename,
        version=version,
        url=absolute,
        sha256=_sha256(hashes),
        requires_python=_text(entry.get("requires-python")),
        yanked=entry.get("yanked") not in (None, False),
        uploaded=_time(entry.get("upload-time")),
        size=_size(entry.get("size")),
        metadata_sha256=_metadata(entry.get("core-metadata", entry.get("dist-info-metadata"))),
    )


def release_of(name: str, filename: str) -> str | None:
    """Return the version that a wheel's or sdist's file name gives to project `name`, else None.

    A page names thousands of files of few versions: the parts are read once, as `packaging` reads the whole.
    """
    wheel = _WHEEL.fullmatch(filename)
    if filename.endswith(".whl") and not (wheel and _is_tag(wheel[3])):
        return None
    stem = filename.removesuffix(".tar.gz") if filename.endswith(".tar.gz") else filename.removesuffix(".zip")
    if wheel is None and stem == filename:
        return None
    project, version = (wheel[1], wheel[2]) if wheel else stem.rpartition("-")[::2]
    return _version(version) if _project(project) == name else None


@lru_cache(4096)
def _project(text: str) -> str:
    return str(canonicalize_name(text))


@lru_cache(4096)
def _is_tag(text: str) -> bool:
    try:
        parse_wheel_filename(f"x-1-{text}.whl")
    except InvalidWheelFilename:
        return False
    return True


@lru_cache(4096)
def _version(text: str) -> str | None:
    try:
        return str(Version(text))
    except InvalidVersion:
        return None


def _absolute(page_url: str, url: str) -> str | None:
    if _PLAIN_URL.fullmatch(url):
        return url
    try:
        absolute = urljoin(page_url, url)
        scheme = urlsplit(absolute).scheme
    except ValueError:
        return None
    local = urlsplit(page_url).scheme == "file"
    return absolute if scheme in ("https", "http") or (local and scheme == "file") else None


def _sha256(hashes: object) -> str | None:
    digest = hashes.get("sha256") if isinstance(hashes, Mapping) else None
    return digest if isinstance(digest, str) and _SHA256.fullmatch(digest) else None


def _metadata(offered: object) -> str | None:
    if offered in (None, False):
        return None
    return _sha256(offered) or ""


def _text(value: object) -> str | None:
    return value.strip() or None if isinstance(value, str) and len(value) <= 200 else None


def _size(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _time(value: object) -> str | None:
    match = _TIME.fullmatch(value) if isinstance(value, str) else None
    return f"{match.group(1)}Z" if match else None


def project_json_url(index: str, name: str, version: str | None = None) -> str | None:
    """Return where an index whose pages lie under `/simple` keeps the JSON of a project or of one release."""
    parts = urlsplit(index.rstrip("/"))
    root, simple, rest = parts.path.rpartition("/simple")
    if not simple or rest or parts.scheme == "file":
        return None
    release = f"{version}/" if version else ""
    return urlunsplit((parts.scheme, parts.netloc, f"{root}/pypi/{name}/{release}json", "", ""))


def _completed(fetcher: Fetcher, index: str, page: ProjectPage) -> tuple[IndexFile, ...]:
    url = project_json_url(index, page.name)
    if url is None:
        return page.files
    try:
        known = parse_project_json(fetcher.get(url, accept="application/json").body)
    except NotFound:
        return page.files
    return tuple(_with_json(file, known.get(file.filename, {})) for file in page.files)


def parse_project_json(body: bytes) -> dict[str, dict[str, Any]]:
    """Return what a project's JSON says of each file, by file name; empty when it makes no sense."""
    try:
        releases = json.loads(body)["releases"].values()
        return {str(file["filename"]): file for files in releases for file in files}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _with_json(file: IndexFile, entry: Mapping[str, Any]) -> IndexFile:
    if _sha256(entry.get("digests")) != file.sha256:
        return file
    offered = _metadata(entry.get("core-metadata"))
    return replace(
        file,
        uploaded=file.uploaded or _time(entry.get("upload_time_iso_8601")),
        size=_size(entry.get("size")) if file.size is None else file.size,
        metadata_sha256=offered if file.metadata_sha256 is None else file.metadata_sha256,
    )
