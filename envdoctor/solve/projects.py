"""Requirements that stand in other files than requirement files; nothing is run.

`pyproject.toml` (the project's own, poetry's), `setup.cfg`, `setup.py` (its literals),
`environment.yml`, `Pipfile`, and the `pip install` commands of Dockerfiles, scripts and notebooks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envdoctor import lazy_re as re
from envdoctor.errors import InputError
from envdoctor.facts.names import normalise
from envdoctor.inputs import parse_json
from envdoctor.solve.requests import PYTHON, Asked, Carried, Request, Stated, parse_line
from envdoctor.solve.versions import InvalidSpecifier, clauses
from envdoctor.toml_text import parse_toml

if TYPE_CHECKING:
    import configparser

Lines = Iterable[str]

_UNREADABLE = (
    *(ValueError, KeyError, TypeError, AttributeError, RecursionError, SyntaxError),
    *(IndexError, MemoryError),
)

_MARKED = re.compile(r"^\s*(?:RUN\s+|[!%]\s*)")
"""How a Dockerfile and a notebook's cell open a line for the shell."""
_NAMED = re.compile(r"\s*([A-Za-z0-9][\w.-]{0,100})(?:\s?\[[\w,. -]{0,200}\])?")


def is_manifest(path: Path) -> bool:
    """True for a file that lists requirements in another form than a requirements file."""
    return _reader_of(path) is not None


def read_manifest(path: Path, text: str, extras: Collection[str] = ()) -> Asked:
    """Return what such a file asks for; raises InputError when it cannot be read."""
    read = _reader_of(path)
    assert read is not None
    try:
        lines = list(read(text, extras))
    except _UNREADABLE as error:
        reason = " ".join(str(error).split())[:120]
        raise InputError(f"{path}: cannot be read: {reason or type(error).__name__}") from None
    if not lines:
        why = "names no requirement that can be read without running it"
        return Asked(carried=(Carried(str(path), "", why),))
    return Asked.joined((_asked(lines, str(path)), told_beside(path, text)))


def told_beside(path: Path, text: str) -> Asked:
    """Return what a project says beside what it requires: of which Python it is, what it makes uv hold."""
    name = path.name.lower()
    python = _PYTHONS[name](text) if name in _PYTHONS else ""
    bound = (Request(PYTHON, (), python, str(path)),) if python else ()
    told = _told_to_uv(path, text) if name == "pyproject.toml" else Asked()
    return Asked.joined((Asked(constraints=bound), told))


def _python_of_pyproject(text: str) -> str:
    document = parse_toml(text)
    poetry = document.get("tool", {}).get("poetry", {}).get("dependencies", {}).get("python", "")
    told = document.get("project", {}).get("requires-python") or _poetry_specifier(str(poetry))
    return told if _is_specifier(told) else ""


def _python_of_setup_cfg(text: str) -> str:
    told = _setup_options(text).get("options", "python_requires", fallback="")
    return told if _is_specifier(told) else ""


def _is_specifier(told: Any) -> bool:
    """True for bounds that can be read: those in another form (poetry's `||`) say nothing here."""
    try:
        return isinstance(told, str) and bool(clauses(told))
    except InvalidSpecifier:
        return False


_PYTHONS = {"pyproject.toml": _python_of_pyproject, "setup.cfg": _python_of_setup_cfg}


def _told_to_uv(path: Path, text: str) -> Asked:
    told = parse_toml(text).get("tool", {}).get("uv", {})
    bound, over = (
        _asked(filter(None, told.get(key) or ()), f"{path}: {key}")
        for key in ("constraint-dependencies", "override-dependencies")
    )
    return Asked(
        tuple(one for one in over.requests if one.line),
        constraints=bound.requests,
        overrides=tuple(one for one in over.requests if not one.line),
        stated=(stated := tuple(_stated(told.get("dependency-metadata") or ()))),
        carried=(*bound.carried, *over.carried),
        notes=tuple(
            f"{path}: what {one.name} {one.version or '(any)'} requires is as its dependency-metadata say"
            for one in stated
        ),
    )


def _stated(tables: Iterable[Mapping[str, Any]]) -> Iterator[Stated]:
    for one in tables:
        yield Stated(normalise(one["name"]), one.get("version", ""), tuple(one.get("requires-dist", ())))


def _asked(lines: Lines, source: str) -> Asked:
    read = [parse_line(line, source) for line in lines]
    return Asked(
        requests=tuple(one for one in read if one is not None and not isinstance(one, Carried)),
        carried=tuple(one for one in read if isinstance(one, Carried)),
    )


def _reader_of(path: Path) -> Callable[[str, Collection[str]], Lines] | None:
    name = path.name.lower()
    if name in PROJECT_FILES:
        return PROJECT_FILES[name]
    if name == "pipfile":
        return _pipfile
    if name.startswith("environment") and path.suffix in (".yml", ".yaml"):
        return _conda
    if "dockerfile" in name or path.suffix in (".sh", ".bash"):
        return _shell
    return _notebook if path.suffix == ".ipynb" else None


def _pyproject(text: str, extras: Collection[str]) -> Lines:
    document = parse_toml(text)
    project = document.get("project", {})
    places = _places(document.get("tool", {}).get("uv", {}).get("sources", {}))
    for line in project.get("dependencies", ()):
        yield from _placed(line, places)
    for extra in extras:
        for line in project.get("optional-dependencies", {}).get(extra, ()):
            yield from _placed(line, places)
    for group in ("dev",) if not project and not document.get("tool", {}).get("poetry") else ():
        yield from (
            line for line in document.get("dependency-groups", {}).get(group, ()) if isinstance(line, str)
        )
    yield from _table_lines(document.get("tool", {}).get("poetry", {}).get("dependencies", {}))


def _places(sources: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return where `tool.uv.sources` takes packages from that no index gives, each place with its marker."""
    found: dict[str, list[str]] = {}
    for name, told in sources.items():
        for one in told if isinstance(told, list) else [told]:
            marker = f" ; {one['marker']}" if one.get("marker") else ""
            if place := "./" if one.get("workspace") else _place(one):
                found.setdefault(normalise(name), []).append(f"{place}{marker}")
    return found


def _placed(line: str, places: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield a requirement as it stands, or with each place that stands for the index."""
    named = _NAMED.match(line)
    of_it = places.get(normalise(named[1])) if named else None
    if named is None or of_it is None:
        yield line
    else:
        yield from (f"{named[0]} @ {place}" for place in of_it)


def _place(entry: Mapping[str, Any]) -> str:
    """Return the place that a table of uv's, poetry's or a Pipfile names, as a requirement names it."""
    place = entry.get("url") or entry.get("path") or entry.get("git")
    if not place:
        return ""
    revision = entry.get("tag") or entry.get("rev") or entry.get("ref") or entry.get("branch")
    return f"{'git+' if 'git' in entry else ''}{place}{f'@{revision}' if revision else ''}"


def _pipfile(text: str, extras: Collection[str]) -> Lines:
    return _table_lines(parse_toml(text).get("packages", {}))


def _table_lines(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield poetry's and Pipfile's tables as requirement lines."""
    for name, told in table.items():
        for one in told if isinstance(told, list) else [told]:
            entry = one if isinstance(one, Mapping) else {"version": one}
            if name.lower() == "python" or entry.get("optional"):
                continue
            extras = f"[{','.join(entry['extras'])}]" if entry.get("extras") else ""
            where = " and ".join(_conditions(entry))
            marker = f" ; {where}" if where else ""
            if place := _place(entry):
                yield f"{name}{extras} @ {place}{marker}"
            else:
                yield f"{name}{extras}{_poetry_specifier(str(entry.get('version', '*')))}{marker}"


def _conditions(entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield where a line of poetry's or a Pipfile's holds: by its marker, its Python and its platform.

    Source: https://python-poetry.org/docs/dependency-specification/
    """
    if told := entry.get("markers"):
        yield f"({told})"
    for key, variable in (("python", "python_full_version"), ("platform", "sys_platform")):
        parts = [part.strip() for part in str(entry.get(key, "")).split("||")]
        if all(parts):
            yield f"({' or '.join(_holding(variable, part) for part in parts)})"


def _holding(variable: str, part: str) -> str:
    """Return a marker that holds within bounds, such as `>=3.9,<3.12` or `!=darwin`."""
    bounds = re.findall(r"([=!<>~]{0,3})\s*([^,=!<>~\s]+)", part)
    if variable == "python_full_version":
        bounds = [*clauses(_poetry_specifier(part))] if _is_specifier(_poetry_specifier(part)) else []
    told = " and ".join(f"{variable} {operator or '=='} '{bound}'" for operator, bound in bounds)
    return told or f"{variable} != ''"


def _poetry_specifier(text: str) -> str:
    """Return poetry's `^1.2`, `~1.2`, `1.2`, `=1.2` as PEP 440."""
    clauses = []
    for part in (part.strip() for part in text.split(",")):
        if part in ("*", ""):
            continue
        if part[0] in "^~" and part[1:2] != "=":
            clauses.append(_caret(part[0], part[1:].strip()))
        else:
            clauses.append(re.sub(r"^=?\s*(?=\d)", "==", part))
    return ",".join(clauses)


def _caret(sign: str, bound: str) -> str:
    numbers = [int(number) for number in re.findall(r"\d+", bound)]
    if sign == "~":
        kept = min(2, len(numbers))
    else:
        kept = next((place for place, number in enumerate(numbers, 1) if number), len(numbers))
    upper = [*numbers[: kept - 1], numbers[kept - 1] + 1] if numbers else [1]
    return f">={bound},<{'.'.join(map(str, upper))}"


def _setup_options(text: str) -> configparser.ConfigParser:
    import configparser

    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise ValueError(str(error)) from None
    return parser


def _setup_cfg(text: str, extras: Collection[str]) -> Lines:
    parser = _setup_options(text)
    yield from _indented(parser.get("options", "install_requires", fallback=""))
    for extra in extras:
        yield from _indented(parser.get("options.extras_require", extra, fallback=""))


def _indented(text: str) -> Iterator[str]:
    return (line.strip() for line in text.splitlines() if line.strip())


def _setup_py(text: str, extras: Collection[str]) -> Lines:
    from envdoctor.solve.literals import required_by  # dear to load

    return required_by(text)


def _conda(text: str, extras: Collection[str]) -> Lines:
    """Yield the pip part of a conda environment; conda's own packages are its solver's affair."""
    import yaml

    try:
        document = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise ValueError(error) from None
    for entry in document.get("dependencies", ()):
        if isinstance(entry, Mapping):
            yield from (str(line) for line in entry.get("pip", ()) or ())


def _notebook(text: str, extras: Collection[str]) -> Lines:
    for cell in parse_json(text)["cells"]:
        if cell.get("cell_type") == "code":
            yield from _shell("".join(cell.get("source", ())), extras)


def _shell(text: str, extras: Collection[str]) -> Lines:
    """Yield what the `pip install` commands of a script name."""
    from envdoctor.images.recipe import installs_of

    for line in text.replace("\\\n", " ").splitlines():
        for one in installs_of(_MARKED.sub("", line)) if "pip" in line else ():
            yield from (word for word in one.wanted if one.tool == "pip" and word != ".")


PROJECT_FILES: dict[str, Callable[[str, Collection[str]], Lines]] = {
    "pyproject.toml": _pyproject,
    "setup.cfg": _setup_cfg,
    "setup.py": _setup_py,
}
"""What a project's folder may tell its requirements in, in the order in which builds ask."""
