"""Pins as `pylock.toml` (PEP 751): the files that install on the target, with the hashes the index gives."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from envdoctor.errors import Unavailable
from envdoctor.harvest.index_pages import IndexFile
from envdoctor.probes.urls import without_user
from envdoctor.solve.answer import PinSet
from envdoctor.solve.documents import Header
from envdoctor.solve.reasons import Pin
from envdoctor.solve.variants import INDEX_URL
from envdoctor.target.resolve import Target
from envdoctor.target.wheels import Wheels

ReadFiles = Callable[[Pin], Iterable[IndexFile]]
"""Returns the files that a pin's release has on its index; raises Unavailable."""

PAGES_AT_ONCE = 8


def pylock_text(answer: PinSet, header: Header, read_files: ReadFiles) -> str:
    """Return the lock file; raises Unavailable when a file or its hash cannot be had."""
    files = _files(answer, read_files)
    lines = [*header.lines(answer), 'lock-version = "1.0"', f"environments = [{_marker(answer.target)}]"]
    lines += [f'requires-python = ">={answer.target.python_minor}"', 'created-by = "envdoctor"']
    for pin in answer.pins:
        lines += ["", "[[packages]]", f"name = {_quoted(pin.name)}", f"version = {_quoted(pin.label)}"]
        lines.extend(_file_lines(pin, files[pin], answer.target))
    return "\n".join(lines) + "\n"


def _files(answer: PinSet, read_files: ReadFiles) -> dict[Pin, list[IndexFile]]:
    with ThreadPoolExecutor(PAGES_AT_ONCE) as pool:
        return dict(zip(answer.pins, pool.map(lambda pin: list(read_files(pin)), answer.pins), strict=True))


def hashes_of(answer: PinSet, read_files: ReadFiles) -> dict[str, list[str]]:
    """Return the hashes of each pin's files that install on the target; raises Unavailable."""
    files = _files(answer, read_files)
    return {pin.name: [_hash(file) for file in fitting(pin, files[pin], answer.target)] for pin in files}


def _hash(file: IndexFile) -> str:
    if not file.sha256:
        raise Unavailable(f"{file.filename}: its index gives no hash")
    return file.sha256


def fitting(pin: Pin, files: Iterable[IndexFile], target: Target) -> list[IndexFile]:
    """Return the wheels that install on the target, else one source; raises Unavailable."""
    listed = sorted(files, key=lambda file: file.filename)
    fit = Wheels(target).install
    wheels = [f for f in listed if f.is_wheel and fit(_tag(f.filename))]
    sources = [f for f in listed if not f.is_wheel and f.filename.endswith((".tar.gz", ".zip"))]
    if not wheels and not sources:
        raise Unavailable(f"{pin.name} {pin.label}: its index lists no file that installs on the target")
    return wheels or sources[:1]


def _marker(target: Target) -> str:
    environment = target.marker_environment()
    told = ("python_version", "sys_platform", "platform_machine")
    return _quoted(" and ".join(f"{name} == '{environment[name]}'" for name in told))


def _file_lines(pin: Pin, files: Iterable[IndexFile], target: Target) -> Iterator[str]:
    found = fitting(pin, files, target)
    if found[0].is_wheel:
        yield "wheels = ["
        for wheel in found:
            yield f"  {_table(wheel)},"
        yield "]"
    else:
        yield f"sdist = {_table(found[0])}"


def _tag(filename: str) -> str:
    return "-".join(filename[:-4].split("-")[-3:])


def _table(file: IndexFile) -> str:
    fields = [f"name = {_quoted(file.filename)}", f"url = {_quoted(without_user(file.url))}"]
    if file.size:
        fields.append(f"size = {file.size}")
    return "{ " + ", ".join([*fields, f"hashes = {{ sha256 = {_quoted(_hash(file))} }}"]) + " }"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def index_reader(index_url: str | None, offline: bool) -> ReadFiles:
    """Return a reader of the index this machine uses (or `index_url`); raises Unavailable offline."""
    if offline:
        raise Unavailable(
            "pylock needs the files' hashes from the index, and --offline forbids asking for them"
        )
    from envdoctor.harvest.index_pages import read_project_page
    from envdoctor.harvest.index_settings import read_index_settings
    from envdoctor.harvest.refresh import fetcher_for

    settings = read_index_settings(index_url)
    fetcher = fetcher_for(settings)

    def read(pin: Pin) -> Iterable[IndexFile]:
        url = f"{INDEX_URL}{pin.index}" if pin.index else settings.url
        page = read_project_page(fetcher, url, pin.name, None)
        releases: Mapping[str, Iterable[IndexFile]] = page.releases() if page else {}
        return releases.get(pin.label, ())

    return read
