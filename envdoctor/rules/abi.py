"""Undefined symbols: compiled extensions that were built against another torch than the installed one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from packaging.version import Version

from envdoctor import lazy_re as re
from envdoctor.commands import commands, pip_install
from envdoctor.facts import Observed, Symptom
from envdoctor.findings import Certainty, Finding, Remedy, Severity
from envdoctor.matrix import tables
from envdoctor.matrix.flash_wheels import releases_for, torch_range, wheel_row
from envdoctor.patterns import glob_matches
from envdoctor.rules.base import Rule
from envdoctor.rules.built_for import built_remedies
from envdoctor.rules.conditions import judge
from envdoctor.rules.interface_lookup import distribution_of
from envdoctor.rules.pairs import installed_pair, pair_remedies, pairs_of
from envdoctor.rules.ranges import parse_version
from envdoctor.rules.view import View, explained, installed, quoted, symptoms, torch_build
from envdoctor.values import replace

UNDEFINED = ("SYM-ABI-FLASH-ATTN", "SYM-ABI-VLLM", "SYM-UNDEFINED-SYMBOL", "SYM-MAC-SYMBOL")
UNTOLD = ("SYM-UNDEFINED-BARE", "SYM-UNDEFINED-SAID", "SYM-DLL-PROCEDURE")
"""Lines that tell of a missing symbol, or of a DLL's missing procedure, and leave its name out."""
_OWNED = {"SYM-ABI-FLASH-ATTN": "flash-attn", "SYM-ABI-VLLM": "vllm"}
_ANY, _UNNAMED = "ABI-EXTENSION", "an extension"
_BACKSLASH = chr(92)
"""What parts the folders of a path on Windows."""
_FOLDER = re.compile(r"(?:site|dist)-packages[/\\](\w{2,60})[/\\]")
_CUDAS = re.compile(r"(?:cu|nv|nccl)[A-Za-z]")
"""How the names begin that the driver, CUDA's libraries and NCCL export: they are none of torch's."""
_SKIPPED = re.compile(r"Skipping import of|Failed to load image Python extension")
"""A library says so of an extension that it goes on without."""
_LOADED = "{package} asks for a symbol that torch {torch} has: another torch was loaded than that"
_WHICH_TORCH = Remedy(
    "See which torch is loaded where it fails: a second one may lie in ~/.local, in the base environment or"
    " in the image.",
    ('python -c "import torch; print(torch.__version__, torch.__file__)"',),
)
_TORCH_NAMESPACES = (
    *("N2at", "K2at", "3c10", "5torch", "4c10d", "c10::", "torch::"),
    *("aoti_torch_", "torch_dtype_", "torch_library_"),  # the stable interface of C
)


def check_extensions(view: View) -> Iterable[Finding]:
    """Every extension whose undefined symbol shows that it was built for another torch."""
    by_row: dict[str, list[Symptom]] = {}
    seen = [symptom for symptom in symptoms(view, *UNDEFINED) if _is_torch_symbol(symptom)]
    owners = {one.captured.get("symbol", ""): owner for one in seen if (owner := _owner(view, one)) != _ANY}
    for symptom in seen:
        owner = owners.get(symptom.captured.get("symbol", "")) or _owner(view, symptom)
        by_row.setdefault(owner, []).append(symptom)
    for symptom in symptoms(view, *UNTOLD):
        if (owner := _owner(view, symptom)) != _ANY:
            by_row.setdefault(owner, []).append(symptom)
    for identity, told in by_row.items():
        yield _finding(view, identity, tuple(told))


def _is_torch_symbol(symptom: Symptom) -> bool:
    symbol = symptom.captured.get("symbol", "")
    return any(name in symbol for name in _TORCH_NAMESPACES) or (
        symptom.id in _OWNED and not _CUDAS.match(symbol)
    )


def _owner(view: View, symptom: Symptom) -> str:
    if package := _OWNED.get(symptom.id):
        return f"ABI-{package.upper()}"
    path, rows = _path(view, symptom), view.matrix.rows(tables.ExtensionRow)
    fitting = [row for row in rows if any(glob_matches(path, glob) for glob in row.libraries)]
    listed = (row for row in fitting if view.facts.distribution(row.package))
    row = next(listed, next(iter(fitting), None))
    return row.id if row else _only_one_told(view) or _ANY


def _only_one_told(view: View) -> str:
    """Return the one extension that is told to be there, where the line leaves its library out.

    torch's companions are listed nearly everywhere: another one beside them is the likelier.
    """
    rows = [row for row in view.matrix.rows(tables.ExtensionRow) if view.installed(row.package)]
    told = [row for row in rows if not _may_fit(view, row.package)]
    of_torch = {name for name, row in view.companions.items() if row.of_torch}
    told = [row for row in told if row.package not in of_torch] or told
    return told[0].id if len({row.package for row in told}) == 1 else ""


def _may_fit(view: View, package: str) -> bool:
    """True where the release that is told is made for the torch that is told, as far as it is."""
    spec = torch_of_wheels(view, package)
    return bool(spec and view.version_text("torch")) and judge(view, "torch", spec).holds is not False


def torch_of_wheels(view: View, package: str) -> str:
    """Return the releases of torch that the wheels of the told release are for; empty where not known."""
    version = view.version(package) if package == "flash-attn" else None
    row = wheel_row(view.matrix, version) if version else None
    pair = installed_pair(view, package)
    return torch_range(row) if row else pair.torch if pair else ""


def _path(view: View, symptom: Symptom) -> str:
    """Return the library as it is told: a title leaves its folder out, the error line below has it."""
    symbol = symptom.captured.get("symbol")
    errors = [error for error in view.facts.errors if symbol and symbol in error.text]
    asked = (f"{frame.file} {frame.code}" for error in errors for frame in error.frames[-1:])
    told = " ".join((symptom.captured.get("lib", ""), symptom.text, *(e.text for e in errors), *asked))
    return f"{told} {told.replace(_BACKSLASH, '/')}" if _BACKSLASH in told else told


def _package_at(view: View, seen: Sequence[Symptom]) -> str:
    """Return the distribution in whose folder the library lies; empty where no folder is told."""
    folders = (_FOLDER.search(_path(view, symptom)) for symptom in seen)
    return next((distribution_of(view.matrix, match[1]) for match in folders if match), "")


def _finding(view: View, identity: str, seen: tuple[Symptom, ...]) -> Finding:
    row = view.matrix.row(tables.ExtensionRow, identity)
    package = row.package if row else _package_at(view, seen) or _UNNAMED
    symbol = seen[0].captured.get("symbol", "")
    built = _symbol_rows(view, symbol)
    told = view.facts.distribution("torch")
    torch = told.told if told and told.told else "the installed one"
    guessed = row is not None and seen[0].id not in _OWNED and not _is_named(view, row, seen)
    elsewhere = _is_of_the_told_torch(view, built)
    other = f"{package} was built for another torch than {torch}: undefined symbol at import (ABI)."
    return Finding(
        id=identity,
        severity=Severity.WARNING if all(_SKIPPED.search(s.text) for s in seen) else Severity.ERROR,
        summary=f"{_LOADED.format(package=package, torch=torch)} (ABI)." if elsewhere else other,
        cause=" ".join(_causes(view, package, built)),
        evidence=(*installed(view, package), *torch_build(view), *quoted(seen)),
        remedies=(*([_WHICH_TORCH] if elsewhere else []), *_remedies(view, package, row, built)),
        certainty=Certainty.LIKELY
        if elsewhere or guessed or not symbol or not (view.version_text("torch") or built)
        else Certainty.CERTAIN,
        rows=(identity, *(r.id for r in built)) if row else tuple(r.id for r in built),
        sources=tuple(dict.fromkeys(r.source for r in (row, *built) if r is not None)),
        explains=(*explained(seen), *_also(view, seen)),
        prior=0.9,
        follows=(f"{package.upper()}-TORCH",),
    )


def _is_named(view: View, row: tables.ExtensionRow, seen: Sequence[Symptom]) -> bool:
    paths = [_path(view, symptom) for symptom in seen]
    return any(glob_matches(path, glob) for path in paths for glob in row.libraries)


def _is_of_the_told_torch(view: View, built: Sequence[tables.TorchSymbolRow]) -> bool:
    """True where the torch that is told has the symbol that the one that was loaded had not."""
    if not built or _is_prerelease(view) or any(row.cxx11_abi is not None for row in built):
        return False
    return all(judge(view, "torch", row.torch).holds for row in built)


def _also(view: View, seen: tuple[Symptom, ...]) -> tuple[str, ...]:
    """Other signatures that matched the very same error line."""
    texts = {symptom.text for symptom in seen}
    return tuple({s.id for s in symptoms(view, *UNDEFINED) if s.text in texts} - {s.id for s in seen})


def _symbol_rows(view: View, symbol: str) -> list[tables.TorchSymbolRow]:
    old = _takes_old_strings(symbol)
    return [
        row
        for row in view.matrix.rows(tables.TorchSymbolRow)
        if (old and row.cxx11_abi is False) or any(glob_matches(symbol, glob) for glob in row.symbols)
    ]


def _takes_old_strings(symbol: str) -> bool:
    """True where a mangled name has a `std::string` of the old C++ ABI among its types: `Ss`.

    Names stand there after their length, and are passed over. Source:
    https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling-compression
    """
    left, place = [], 0
    while symbol.startswith("_Z") and place < len(symbol):
        length = re.match(r"\d{1,4}", symbol[place:])
        if length is None:
            left.append(symbol[place])
        place += len(length[0]) + int(length[0]) if length else 1
    return "Ss" in "".join(left)


def _causes(view: View, package: str, built: list[tables.TorchSymbolRow]) -> Iterator[str]:
    yield (
        f"A compiled wheel of {package} fits one minor version of torch (and one build of it: accelerator, "
        "C++ ABI and Python); the symbol it asks torch for is not in the one that was loaded."
    )
    for row in built:
        if row.cxx11_abi is None:
            yield f"That symbol exists in torch {row.torch}, so that is what the binary was built against."
        elif row.cxx11_abi:
            yield "It was built with the new C++ ABI (cxx11abiTRUE), the default wheels' from 2.7 on."
        else:
            yield "It was built with the old C++ ABI (cxx11abiFALSE), the default wheels' up to 2.6."
    if _is_prerelease(view):
        yield (
            "The installed torch is a pre-release, as NGC images carry it: it fits no public wheel, "
            "neither of "
            "the release before nor of the one after."
        )
    if _may_be_split(view, built):
        yield "torch 2.6.0 is split: its cu126 build has the new ABI, cu118 and cu124 (the default) the old."


def _is_prerelease(view: View) -> bool:
    version = view.version("torch")
    return version is not None and version.is_prerelease


def _is_split_release(view: View) -> bool:
    cuda = view.torch_cuda
    return (
        bool(judge(view, "torch", "==2.6.*").holds)
        and isinstance(cuda, Observed)
        and str(cuda.value) == "12.6"
    )


def _may_be_split(view: View, built: Sequence[tables.TorchSymbolRow]) -> bool:
    """True where torch is of the split release: by its build, else where the symbol is of the old ABI."""
    if isinstance(view.torch_cuda, Observed):
        return _is_split_release(view)
    old = any(row.cxx11_abi is False for row in built)
    return old and judge(view, "torch", "==2.6.*").holds is True


def _remedies(
    view: View, package: str, row: tables.ExtensionRow | None, built: list[tables.TorchSymbolRow]
) -> Iterator[Remedy]:
    rebuild = row.rebuild if row else ""
    rebuilding = Remedy(
        f"Rebuild or reinstall {package} against the torch that is installed, past pip's cache.",
        (rebuild,) if rebuild else (),
    )
    if _is_prerelease(view):
        yield rebuilding
        yield Remedy("Use an image, or an environment, whose torch is a release that wheels exist for.")
        return
    if _may_be_split(view, built):
        yield Remedy(
            "Install torch 2.6.0 of the default index (cu124), which public wheels are made for.",
            ("uv pip install --reinstall torch==2.6.0 --torch-backend=cu124",),
        )
    if package == "flash-attn":
        yield from flash_attn_remedies(view)
    else:
        paired = list(pair_remedies(view, package))
        told = any(remedy.pins for remedy in paired)
        yield from paired if told else built_remedies(view, package, row.owner if row else None)
        yield from () if told else paired
    if row is None or rebuild:
        yield rebuilding
    if row is None and package == _UNNAMED:
        for remedy in flash_attn_remedies(view):
            way = remedy.text[:1].lower() + remedy.text[1:]
            yield replace(
                remedy, text=f"Where it is flash-attn (the last import above the error tells): {way}"
            )
    if row and row.optional_for:
        users = " and ".join(row.optional_for)
        yield Remedy(
            f"Or uninstall {package}, where your own code does not ask for it: {users} import it only where"
            " it is installed.",
            commands("pip uninstall -y {}", package),
        )
    if spec := _built_range(view, package, built):
        yield Remedy(
            f"Install the torch it was built for: {spec}.",
            pip_install(f"torch{spec}"),
            {"torch": spec},
        )
    if view.facts.distribution("torch") is None and (first := _first_of_a_later_torch(view, package)):
        pins = {package: f">={first}"}
        yield Remedy(
            f"Or, where a newer torch than that is installed (an installation brings the newest), a {package}"
            f" of its time: {first} is the first for a later one.",
            pip_install(f"{package}>={first}"),
            pins,
        )


def _first_of_a_later_torch(view: View, package: str) -> str:
    """Return the first release that is made for a later minor of torch than the told one; empty for none."""
    version = view.version(package)
    if package == "flash-attn":
        row = wheel_row(view.matrix, version) if version else None
        if row is None:
            return ""
        rows, last = view.matrix.rows(tables.FlashAttnWheelRow), max(map(Version, row.torch))
        later = (Version(v) for one in rows if max(map(Version, one.torch)) > last for v in one.versions)
        return str(min(later, default=""))
    here, pairs = installed_pair(view, package), pairs_of(view.matrix, package)
    own = _first_release(here.torch) if here else None
    later_pairs = (p for p in pairs if own and (torch := _first_release(p.torch)) and torch > own)
    return next((".".join(map(str, v.release)) for p in later_pairs if (v := _lowest(p.versions))), "")


def _lowest(specifier: str) -> Version | None:
    """Return the release that a specifier begins with."""
    return parse_version(specifier.partition(",")[0].lstrip("=<>~ ").removesuffix(".*"))


def _first_release(specifier: str) -> tuple[int, ...] | None:
    lowest = _lowest(specifier)
    return lowest.release[:2] if lowest else None


def flash_attn_remedies(view: View) -> Iterator[Remedy]:
    """Yield the releases of flash-attn with a wheel for this torch, and the torch that its own are for."""
    torch, version = view.torch_minor, view.version("flash-attn")
    glibc = parse_version(view.facts.host.glibc.get() or "")
    python = parse_version(view.python.get() or "")
    if torch is not None and (
        spec := releases_for(view.matrix, torch, glibc, python, _is_split_release(view))
    ):
        again = " --force-reinstall --no-deps" if judge(view, "flash-attn", spec).holds is not False else ""
        options = f"--no-build-isolation --no-cache-dir{again}"
        yield Remedy(
            f"Install a flash-attn that has a wheel for torch {torch}: {spec}.",
            pip_install(f"flash-attn{spec}", options=options),
            {"flash-attn": spec},
        )
    row = wheel_row(view.matrix, version) if version else None
    if row is not None and (torch is None or str(torch) not in row.torch):
        spec = torch_range(row)
        yield Remedy(
            f"Keep flash-attn {version} with torch {spec}.",
            pip_install(f"torch{spec}"),
            {"torch": spec},
        )


def _built_range(view: View, package: str, built: list[tables.TorchSymbolRow]) -> str | None:
    """The torch that the symbol and the package's own pairs agree on; None when it tells nothing new."""
    told = [row.torch for row in built if row.cxx11_abi is None]
    if not told:
        return None
    spec = ",".join(dict.fromkeys(",".join(told).split(",")))
    if judge(view, "torch", spec).holds:
        return None
    newest = _newest_pair(view, package, spec) or _newest_of_wheels(view, package, spec)
    return f"=={newest.major}.{newest.minor}.*" if newest else spec


def _newest_pair(view: View, package: str, spec: str) -> Version | None:
    from envdoctor.specifiers import SpecifierSet

    exact = (
        r.torch.removeprefix("==") for r in view.matrix.rows(tables.TorchPairRow) if r.package == package
    )
    versions = [version for text in exact if (version := parse_version(text))]
    return max((v for v in versions if SpecifierSet(spec).contains(v)), default=None)


def _newest_of_wheels(view: View, package: str, spec: str) -> Version | None:
    """The newest torch inside `spec` that the installed flash-attn was released for."""
    from envdoctor.specifiers import SpecifierSet

    version = view.version(package) if package == "flash-attn" else None
    row = wheel_row(view.matrix, version) if version else None
    minors = [Version(text) for text in row.torch] if row else []
    return max((v for v in minors if SpecifierSet(spec).contains(v)), default=None)


RULES = (Rule("EXTENSION-ABI", "Compiled extensions were built for the installed torch", check_extensions),)
