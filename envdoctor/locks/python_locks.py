"""`poetry.lock`, `pdm.lock`, `pylock.toml` and `Pipfile.lock`: the project's own requirements, no groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from envdoctor import lazy_re as re
from envdoctor.facts.names import normalise
from envdoctor.locks.values import (
    MINORS,
    Lock,
    Locked,
    Markers,
    header_lines,
    named,
    oldest_minor,
    table_of,
    tables_of,
    text_of,
)

Package = tuple[str, Mapping[str, Any], int]

_LINE = re.compile(r"\s*([\w.-]+)\s*(?:\[([^\]]*)\])?[^;]*(?:;\s*(.*))?")
_EXTRA = re.compile(r"extra == \"[^\"]*\"")
_GROUPLESS = "it does not tell which packages are for development only: all of them are read"


def read_poetry(document: Mapping[str, Any], text: str, project: Mapping[str, Any] | None = None) -> Lock:
    """Return what `poetry install --only main` installs, as far as the lock tells; raises Unreadable.

    Locks of poetry before 2 tell nothing of groups: there `project`, the pyproject.toml beside it, does.
    """
    markers = Markers(_poetry_python(text_of(table_of(document.get("metadata")).get("python-versions"))))
    packages = named(tables_of(document.get("package")), header_lines(text, "[[package]]"))
    grouped = any("groups" in table or "category" in table for _, table, _ in packages)
    marked = any("groups" in table for _, table, _ in packages)
    kept = [one for one in packages if _of_main(one[1]) and _poetry_holds(one[1], markers)]
    roots = _poetry_roots(project, markers) if project and not marked else None
    if not marked:  # markers then stand at what requires a package, not at itself
        needed = _needed(kept, markers) if roots is None else _brought(kept, roots, markers)
        kept = [one for one in kept if one[0] in needed]
        grouped = grouped or roots is not None
    found = tuple(_plain(*one, _poetry_origin(one[1])) for one in kept)
    return Lock("poetry.lock", found, markers.read_for, grouped, notes=() if grouped else (_GROUPLESS,))


def _of_main(table: Mapping[str, Any]) -> bool:
    groups = table.get("groups")
    return ("main" in groups if isinstance(groups, list) else table.get("category") in (None, "main")) and (
        "groups" in table or not table.get("optional")
    )


def _poetry_holds(table: Mapping[str, Any], markers: Markers) -> bool:
    told = table.get("markers")
    if not markers.admitted_by(table.get("python-versions")):
        return False
    return markers.hold(told.get("main") if isinstance(told, Mapping) else told)


def _poetry_origin(table: Mapping[str, Any]) -> str | None:
    kind = text_of(table_of(table.get("source")).get("type"))
    return {"git": "vcs", "url": "url", "file": "file", "directory": "file"}.get(kind)


def _poetry_python(text: str) -> str:
    """Return poetry's `^3.9`, `~3.9` or `3.9` as a specifier, the first of its alternatives."""
    first = text.split("||")[0].strip()
    if first[:1].isdigit():
        return f"=={first}"
    return re.sub(r"[\^~](?!=)\s*", ">=", first) if first != "*" else ""


def _poetry_roots(project: Mapping[str, Any], markers: Markers) -> dict[str, set[str]] | None:
    """Return what a project of poetry's requires itself, with the extras asked of each; None if not told."""
    roots: dict[str, set[str]] = {}
    own = table_of(table_of(project.get("tool")).get("poetry"))
    if "dependencies" not in own and "dependencies" not in table_of(project.get("project")):
        return None
    for name, told in table_of(own.get("dependencies")).items():
        for entry in (table_of(one) for one in (told if isinstance(told, list) else [told])):
            if name != "python" and not entry.get("optional") and markers.hold(entry.get("markers")):
                roots.setdefault(normalise(name), set()).update(map(normalise, entry.get("extras") or ()))
    for line in table_of(project.get("project")).get("dependencies") or ():
        if (match := _LINE.match(line)) and markers.hold(match[3]):
            extras = (match[2] or "").replace(" ", "").split(",")
            roots.setdefault(normalise(match[1]), set()).update(map(normalise, filter(None, extras)))
    return roots


def _brought(packages: list[Package], roots: Mapping[str, set[str]], markers: Markers) -> set[str]:
    """Return the names that roots bring, by what each package requires and by the extras asked of it."""
    tables: dict[str, list[Mapping[str, Any]]] = {}
    for name, table, _ in packages:
        tables.setdefault(name, []).append(table)
    todo = [(name, extra) for name, extras in roots.items() for extra in ("", *sorted(extras))]
    seen = set(todo)
    for name, extra in todo:
        for target, more in (
            pair for table in tables.get(name, ()) for pair in _asked(table, extra, markers)
        ):
            fresh = {(target, one) for one in ("", *more)} - seen
            todo += sorted(fresh)
            seen |= fresh
    return {name for name, _ in seen}


def _asked(table: Mapping[str, Any], extra: str, markers: Markers) -> Iterator[tuple[str, list[str]]]:
    """Yield what one package requires, or what one of its extras adds, with the extras asked of that."""
    told = {normalise(one): lines for one, lines in table_of(table.get("extras")).items()}
    added = {normalise(match[1]) for line in told.get(extra, ()) if (match := _LINE.match(line))}
    for name, wanted in table_of(table.get("dependencies")).items():
        for entry in (table_of(one) for one in (wanted if isinstance(wanted, list) else [wanted])):
            meant = normalise(name) in added if extra else not entry.get("optional")
            marker = _EXTRA.sub('python_version > "3"', text_of(entry.get("markers")))
            if meant and markers.hold(marker):
                yield normalise(name), [normalise(one) for one in entry.get("extras") or ()]


def _needed(packages: list[Package], markers: Markers) -> set[str]:
    """Return the names that nothing requires, and those that something requires where its marker holds.

    Packages that require one another, and that nothing else requires, are there for themselves, too.
    """
    told: dict[str, set[str]] = {name: set() for name, _, _ in packages}
    held: dict[str, set[str]] = {name: set() for name, _, _ in packages}
    for name, table, _ in packages:
        for target, wanted in table_of(table.get("dependencies")).items():
            entries = [table_of(one) for one in (wanted if isinstance(wanted, list) else [wanted])]
            if not all(one.get("optional") for one in entries):
                told[name].add(normalise(target))
                if any(markers.hold(one.get("markers")) for one in entries):
                    held[name].add(normalise(target))
    seen = _reached(told.keys() - set().union(*told.values()), held)
    for name in told.keys() - seen:
        askers = {asker for asker, wanted in told.items() if name in wanted}
        if name not in seen and askers <= _reached({name}, told):
            seen |= _reached({name}, held)
    return seen


def _reached(names: set[str], edges: Mapping[str, set[str]]) -> set[str]:
    queue, seen = list(names), set(names)
    while queue:
        fresh = edges.get(queue.pop(), set()) - seen
        seen |= fresh
        queue.extend(fresh)
    return seen


def read_pdm(document: Mapping[str, Any], text: str) -> Lock:
    """Return what `pdm install --prod` installs; raises Unreadable."""
    metadata = table_of(document.get("metadata"))
    targets = [text_of(one.get("requires_python")) for one in tables_of(metadata.get("targets"))]
    packages = named(tables_of(document.get("package")), header_lines(text, "[[package]]"))
    told = [text_of(table.get("requires_python")) for _, table, _ in packages]
    markers = Markers(targets[0] if targets else ",".join(sorted({one for one in told if ">" in one})))
    grouped = any("groups" in table for _, table, _ in packages)
    kept = {
        name: _plain(name, table, line, _pdm_origin(table))
        for name, table, line in packages
        if (not grouped or "default" in (table.get("groups") or ())) and markers.hold(table.get("marker"))
    }
    return Lock(
        "pdm.lock", tuple(kept.values()), markers.read_for, grouped, notes=() if grouped else (_GROUPLESS,)
    )


def _pdm_origin(table: Mapping[str, Any]) -> str | None:
    return "vcs" if "git" in table else "url" if "url" in table else "file" if "path" in table else None


def read_pylock(document: Mapping[str, Any], text: str) -> Lock:
    """Return what an installer puts in from a `pylock.toml` with no extra and its default groups."""
    groups = document.get("default-groups")
    chosen = [text_of(one) for one in groups] if isinstance(groups, list) else []
    packages = named(tables_of(document.get("packages")), header_lines(text, "[[packages]]"))
    markers = Markers(_pylock_python(document, packages), chosen)
    found = tuple(
        _plain(
            name, table, line, _pylock_origin(table), bool(table_of(table.get("directory")).get("editable"))
        )
        for name, table, line in packages
        if markers.hold(table.get("marker"))
    )
    return Lock("pylock.toml", found, markers.read_for)


def _pylock_python(document: Mapping[str, Any], packages: list[Package]) -> str:
    """Return which Pythons the lock admits: of one alone where it names wheels of no other."""
    told = text_of(document.get("requires-python"))
    fit = set(MINORS).intersection(*(_wheel_minors(table) for _, table, _ in packages))
    oldest = oldest_minor(told)
    chosen = next((minor for minor in sorted(fit) if minor >= oldest), oldest)
    return told if chosen == oldest else f"==3.{chosen}.*"


def _wheel_minors(table: Mapping[str, Any]) -> set[int]:
    """Return the minors of Python 3 for which a package is there: all but where it has wheels alone."""
    found: set[int] = set()
    wheels = tables_of(table.get("wheels"))
    for one in wheels:
        file = text_of(one.get("name")) or text_of(one.get("url")) or text_of(one.get("path"))
        python, abi = (*file.rpartition("/")[2].split("-")[-3:], "", "")[:2]
        minors = [int(tag[3:]) for tag in python.split(".") if re.fullmatch(r"cp3\d{1,2}", tag)]
        if not minors:
            return set(MINORS)
        found |= {*range(min(minors), MINORS[-1] + 1)} if abi in ("abi3", "none") else {*minors}
    return found if wheels and "sdist" not in table else set(MINORS)


def _pylock_origin(table: Mapping[str, Any]) -> str | None:
    kinds = {"vcs": "vcs", "archive": "url", "directory": "file"}
    return next((origin for kind, origin in kinds.items() if kind in table), None)


def _plain(
    name: str, table: Mapping[str, Any], line: int, origin: str | None, editable: bool = False
) -> Locked:
    return Locked(name, text_of(table.get("version")) or None, line, origin, editable)


def read_pipfile(document: Mapping[str, Any], text: str) -> Lock:
    """Return what `pipenv sync` installs: the default section."""
    told = table_of(table_of(table_of(document.get("_meta")).get("requires")))
    version = text_of(told.get("python_version") or text_of(told.get("python_full_version"))[:4].rstrip("."))
    markers = Markers(f"=={version}.*" if version else "")
    lines = {name: number for number, name in _keys(text)}
    found = tuple(
        Locked(
            normalise(name),
            _exact(entry),
            lines.get(name, 0),
            _pipfile_origin(entry),
            bool(entry.get("editable")),
        )
        for name, entry in table_of(document.get("default")).items()
        if isinstance(entry, Mapping) and markers.hold(entry.get("markers"))
    )
    return Lock("Pipfile.lock", found, markers.read_for)


def _exact(entry: Mapping[str, Any]) -> str | None:
    return text_of(entry.get("version")).lstrip("= ") or None


def _pipfile_origin(entry: Mapping[str, Any]) -> str | None:
    return "vcs" if "git" in entry else "file" if "path" in entry else "url" if "file" in entry else None


def _keys(text: str) -> Iterator[tuple[int, str]]:
    """Yield the package names of a `Pipfile.lock` with their lines, last section first."""
    lines = [*enumerate(text.splitlines(), 1)]
    for number, line in reversed(lines):
        if match := re.match(r'^ {8}"([^"]{1,200})": \{', line):
            yield number, match[1]
