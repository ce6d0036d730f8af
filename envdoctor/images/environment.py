"""An image's facts: the Python that its PATH leads to, what is installed for it, its CUDA, its variables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from envdoctor import lazy_re as re
from envdoctor.facts import (
    CudaVersion,
    Distribution,
    Environment,
    Facts,
    Host,
    Observed,
    Toolkit,
    Unknown,
)
from envdoctor.facts.names import DISTRIBUTION
from envdoctor.images.archive import Saved, read_saved
from envdoctor.images.contents import Tree, read_tree, sites
from envdoctor.inputs import open_input
from envdoctor.matrix.torch_wheels import COMPANIONS
from envdoctor.probes.builds import parse_assignments
from envdoctor.probes.distributions import NAME as NAMED
from envdoctor.probes.distributions import VERSION as VERSIONED
from envdoctor.probes.distributions import fit, normalize, parse_direct_url, parse_headers
from envdoctor.probes.variables import select_variables

Found = dict[str, Distribution]
_CONDA_FILE = re.compile(r"(.+)-([^-]+)-[^-]+\.json")
_PYTHON_FOLDER = re.compile(r"python(3\.\d{1,2})(?:/|$)")
_ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}


def read_image(path: str) -> Facts:
    """Return the facts of a saved image (`docker save`, OCI); raises InputError naming the file.

    Layers are read where they lie and laid over one another in order; nothing is run, and nothing is written.
    """
    with open_input(path) as stream:
        saved = read_saved(stream, path)
    tree = read_tree(lambda: open_input(path), saved, path)
    return facts_of(saved, tree)


def facts_of(saved: Saved, tree: Tree) -> Facts:
    """Return the facts of an image whose layers were read."""
    variables = _environ(saved.config)
    kept, dropped = select_variables(variables)
    python = _python(tree, variables.get("PATH", ""))
    chosen = _chosen(tree, variables, python)
    found = _distributions(tree, chosen)
    version = _python_version(tree, chosen, python)
    notes = [*tree.problems, *_other_sites(tree, chosen)]
    if not python:
        notes.append("PATH leads to no Python in the image: which packages it would find is not known")
    if dropped:
        notes.append("not kept, for their values look secret: " + ", ".join(dropped))
    return Facts(
        host=_host(saved.config, tree),
        toolkits=_toolkits(tree, variables.get("CUDA_VERSION", "")),
        environment=Environment(
            python=Observed(version, "the image") if version else Unknown("its files do not tell"),
            kind=Observed("conda", "the image") if _is_conda(tree, chosen) else Unknown("not told"),
            distributions=found,
            complete=bool(found) and not tree.problems,
            builds=dict(_builds(tree, chosen, found)),
        ),
        variables=kept,
        notes=tuple(notes),
        unread={"layers": "; ".join(tree.problems)} if tree.problems else {},
    )


def _environ(config: Mapping[str, Any]) -> dict[str, str]:
    inner = config.get("config")
    told = inner.get("Env") if isinstance(inner, Mapping) else None
    pairs = [one.partition("=") for one in told if isinstance(one, str)] if isinstance(told, list) else []
    return {name: value for name, _, value in pairs if name}


def _python(tree: Tree, path: str) -> str:
    """Return the interpreter that a PATH leads to first, or nothing."""
    for folder in (path or "/usr/local/bin:/usr/bin:/bin").split(":"):
        for name in ("python3", "python"):
            place = f"{folder.strip('/')}/{name}"
            if place in tree.names or place in tree.links:
                return place
    return ""


def _chosen(tree: Tree, variables: Mapping[str, str], python: str) -> list[str]:
    """Return the folders that the interpreter looks for packages in, first to last."""
    named = variables.get("VIRTUAL_ENV") or variables.get("CONDA_PREFIX") or ""
    prefix = named.strip("/") or tree.real(python).rpartition("/bin/")[0]
    if python and f"{python.rpartition('/bin/')[0]}/pyvenv.cfg" in tree.texts:
        prefix = python.rpartition("/bin/")[0]
    real = prefix if f"{prefix}/pyvenv.cfg" in tree.texts else tree.real(prefix)
    minor = _minor(tree, python)
    folders = [f"{real}/lib/python{minor}/site-packages"] if minor else []
    if real in ("usr", "usr/local", ""):
        folders = [
            *(
                f"{base}/python{minor}/{kind}-packages"
                for base in ("usr/local/lib",)
                for kind in ("dist", "site")
            ),
            "usr/lib/python3/dist-packages",
            f"usr/lib/python{minor}/site-packages",
        ]
    known = {tree.real(site): site for site in sites(tree)}
    found = [known[tree.real(folder)] for folder in folders if tree.real(folder) in known]
    within = [
        site for real_site, site in known.items() if real and real_site.startswith(f"{real}/lib/python")
    ]
    return list(dict.fromkeys(found)) or within[:1]


def _minor(tree: Tree, python: str) -> str:
    real = tree.real(python)
    match = re.search(r"python(3\.\d{1,2})$", real) or re.search(r"python(3\.\d{1,2})$", python)
    if match:
        return match[1]
    folder = real.rpartition("/bin/")[0] + "/bin/python3."
    beside = sorted(name for name in (*tree.names, *tree.links) if name.startswith(folder))
    return f"3.{beside[0][len(folder) :]}" if beside else ""


def _python_version(tree: Tree, chosen: Iterable[str], python: str) -> str:
    for site in chosen:
        prefix = site.partition("/lib/python")[0]
        conda = next((n for n in tree.names if n.startswith(f"{prefix}/conda-meta/python-3.")), "")
        if match := _CONDA_FILE.fullmatch(conda.rpartition("/")[2]):
            return match[2]
        config = tree.texts.get(f"{prefix}/pyvenv.cfg", b"").decode("utf-8", "replace")
        if match := re.search(r"(?m)^version(?:_info)?\s*=\s*(3\.\d{1,2}(?:\.\d{1,3})?)", config):
            return match[1]
        if match := _PYTHON_FOLDER.search(site):
            return match[1]
    return _minor(tree, python)


def _is_conda(tree: Tree, chosen: Iterable[str]) -> bool:
    prefixes = tuple(f"{site.partition('/lib/python')[0]}/conda-meta/" for site in chosen)
    return bool(prefixes) and any(name.startswith(prefixes) for name in tree.names)


def _distributions(tree: Tree, chosen: Iterable[str]) -> Found:
    found: Found = {}
    for site in chosen:
        for path, data in tree.texts.items():
            if path.startswith(site + "/") and path.endswith(
                (".dist-info/METADATA", ".egg-info", "/PKG-INFO")
            ):
                one = _distribution(tree, site, path, data)
                if one is not None and one.name not in found:
                    found[one.name] = one
    return found


def _distribution(tree: Tree, site: str, path: str, data: bytes) -> Distribution | None:
    entry = path[len(site) + 1 :].partition("/")[0]
    stem = re.sub(r"\.(?:dist|egg)-info$", "", entry)
    name, version, requires = parse_headers(data.split(b"\n\n")[0])
    named = normalize(fit(name, NAMED) or stem.partition("-")[0])
    if not DISTRIBUTION.holds(named):
        return None
    folder = f"{site}/{entry}"
    direct = tree.texts.get(f"{folder}/direct_url.json")
    editable, origin = parse_direct_url(direct.decode("utf-8", "replace") if direct else None)
    installer = tree.texts.get(f"{folder}/INSTALLER", b"").decode("utf-8", "replace").strip()
    return Distribution(
        named,
        f"/{folder}",
        version=fit(version, VERSIONED) or fit(stem.partition("-")[2].partition("-py")[0], VERSIONED),
        location=f"/{site}",
        installer=installer if re.fullmatch(r"[\w.-]{1,40}", installer) else None,
        editable=editable,
        origin="conda" if installer == "conda" else origin,
        requires=tuple(requires),
    )


def _builds(tree: Tree, chosen: Iterable[str], found: Found) -> Iterator[tuple[str, dict[str, Any]]]:
    for site in chosen:
        for name in ("torch", *COMPANIONS):
            text = tree.texts.get(f"{site}/{name}/version.py")
            if text is None or name not in found:
                continue
            told = parse_assignments(text.decode("utf-8", "replace"))
            build = {key: told[key] for key in ("cuda", "hip") if told.get(key)}
            if name == "torch" and not build and "cuda" in told:
                build["variant"] = "cpu"
            if told.get("__version__"):
                build["version"] = told["__version__"]
            yield name, build
        names = [
            re.search(r"/libbitsandbytes_(\w+)\.so$", path) for path in tree.names if path.startswith(site)
        ]
        binaries = sorted(match[1] for match in names if match)
        if binaries and "bitsandbytes" in found:
            yield "bitsandbytes", {"binaries": binaries}


def _other_sites(tree: Tree, chosen: Iterable[str]) -> Iterator[str]:
    """Say where torch is installed for another Python than the one that PATH leads to."""
    for path in tree.texts:
        site = path.removesuffix("/torch/version.py")
        if site != path and site not in chosen:
            yield f"torch is installed for another Python as well, in /{site}"


def _host(config: Mapping[str, Any], tree: Tree) -> Host:
    release = (tree.texts.get("etc/os-release") or tree.texts.get("usr/lib/os-release") or b"").decode(
        "utf-8", "replace"
    )
    told = dict(re.findall(r'(?m)^(ID|VERSION_ID)="?([\w.]{1,40})"?$', release))
    arch = _ARCHITECTURES.get(str(config.get("architecture")))
    glibc = _glibc(tree)
    system = "linux" if config.get("os", "linux") == "linux" else None
    return Host(
        os=Observed(system, "the image's configuration") if system else Unknown("an image of another system"),
        distro=_observed(" ".join(filter(None, (told.get("ID"), told.get("VERSION_ID")))), "os-release"),
        arch=_observed(arch, "the image's configuration"),
        glibc=_observed(glibc, "dpkg's status"),
        container=Observed("docker", "a saved image"),
    )


def _observed(value: str | None, source: str) -> Observed[str] | Unknown:
    return Observed(value, source) if value else Unknown("not told")


def _glibc(tree: Tree) -> str | None:
    status = tree.texts.get("var/lib/dpkg/status", b"").decode("utf-8", "replace")
    match = re.search(r"(?m)^Package: libc6$(?:\n.+){0,40}?\nVersion: (2\.\d{1,2})", status)
    return match[1] if match else None


def _toolkits(tree: Tree, cuda: str) -> Observed[tuple[Toolkit, ...]] | Unknown:
    """Return the toolkits that have an nvcc, and the CUDA that the image says that it is for."""
    found: dict[str, Toolkit] = {}
    if stated := re.match(r"\d\d?\.\d\d?", cuda):
        found[""] = Toolkit(CudaVersion.parse(stated[0]), "container image", "CUDA_VERSION")
    compilers = {
        tree.real(name).removesuffix("/bin/nvcc") for name in tree.names if name.endswith("/bin/nvcc")
    }
    active = tree.real("usr/local/cuda")
    for path, data in tree.texts.items():
        match = re.search(
            rb'"cuda"\s*:\s*\{[^{}]*"version"\s*:\s*"(\d\d?\.\d\d?)\b|CUDA Version (\d\d?\.\d\d?)\b', data
        )
        home = tree.real(path.rpartition("/")[0])
        if re.search(r"/cuda[\w.-]*/version\.(?:json|txt)$", path) and match and home in compilers:
            version = (match[1] or match[2]).decode()
            found[home] = Toolkit(CudaVersion.parse(version), f"/{home}", f"/{path}", home == active)
    return (
        Observed(tuple(found.values()), "the image")
        if found
        else Unknown("no toolkit with nvcc in the image")
    )
