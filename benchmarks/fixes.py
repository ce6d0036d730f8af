"""`envdoctor fix` on real environments, broken on purpose: mended, or exactly as they were.

    python benchmarks/fixes.py [--environments N] [--kills N] [--large N] [--only mend,kills,full,index,large]

Makes virtual environments of small packages from the configured index (uv, its cache warm after the
first), breaks each in one of the ways that people's are broken, runs `fix --apply`, and holds the
result against imports of every package and `uv pip check`; `--undo` must then give back the broken
one, byte for byte. Then: kills at random moments, a full file system, an index on loopback that
fails in several ways, one large environment. Nothing is left behind; root is needed for the full
file system (said, where it is not there).
"""

from __future__ import annotations

import argparse
import http.server
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "fixing"))
from small_world import UV, fingerprint, make_environment, make_wheel, states

_PACKAGES = """
requests flask rich httpx jinja2 click pyyaml attrs tqdm packaging python-dateutil six idna certifi
urllib3 markupsafe werkzeug itsdangerous blinker anyio h11 httpcore sniffio pygments markdown-it-py
mdurl filelock fsspec typing-extensions charset-normalizer
"""
PACKAGES = _PACKAGES.split()
_LARGE = """
aiohappyeyeballs aiosignal frozenlist multidict propcache yarl aiohttp numpy pandas pytz tzdata
regex safetensors tokenizers huggingface-hub transformers psutil jsonschema referencing rpds-py
sympy mpmath networkx pydantic pydantic-core annotated-types typing-inspection cffi pycparser
cryptography protobuf msgpack
"""
LARGE = _LARGE.split()
_OLD = """
urllib3 1.20 idna 2.0 werkzeug 2.0.0 jinja2 2.11.3 click 7.0 h11 0.8.1 httpcore 0.9.1 anyio 2.2.0
markupsafe 2.0.1 itsdangerous 1.1.0 pygments 2.5.2 charset-normalizer 1.4.1 certifi 2016.9.26
blinker 1.5
"""
OLD = dict(zip(_OLD.split()[::2], _OLD.split()[1::2], strict=True))


class World:
    """Environments made of one list of packages, each at its own path."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0

    def make(self, packages: list[str]) -> Path:
        """Make an environment without pip and return its folder."""
        self.count += 1
        env = self.folder / f"env{self.count}"
        run(str(UV), "venv", "-q", "--python", sys.executable, str(env))
        run(str(UV), "pip", "install", "-q", "--python", str(env / "bin/python"), *packages)
        return env


def run(*argv: str, timeout: float = 600, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command quietly."""
    told = {**os.environ, **env}
    return subprocess.run(argv, capture_output=True, text=True, timeout=timeout, env=told, check=False)


def fix(env: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `envdoctor fix` on an environment."""
    door = str(Path(sys.executable).with_name("envdoctor"))
    return run(door, "fix", "--python", str(env / "bin/python"), *options, **variables)


def site_of(env: Path) -> Path:
    """Return its packages folder."""
    return next(env.glob("lib/python3*/site-packages"))


def info_of(env: Path, name: str) -> Path:
    """Return a package's dist-info."""
    return next(site_of(env).glob(f"{name.replace('-', '_')}-*.dist-info"))


def module_of(env: Path, name: str) -> Path:
    """Return the folder of a package's module."""
    lines = (info_of(env, name) / "RECORD").read_text().splitlines()
    return site_of(env) / next(x.partition("/")[0] for x in lines if x.split(",")[0].endswith("/__init__.py"))


def older(env: Path, name: str) -> None:
    """Install a release that others do not bear."""
    run(
        str(UV),
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--python",
        str(env / "bin/python"),
        f"{name}=={OLD[name]}",
    )


def without(env: Path, name: str) -> None:
    """Take out what others need."""
    run(str(UV), "pip", "uninstall", "-q", "--python", str(env / "bin/python"), name)


def no_record(env: Path, name: str) -> None:
    """Lose the list of its files."""
    (info_of(env, name) / "RECORD").unlink()


def no_metadata(env: Path, name: str) -> None:
    """Lose what describes it."""
    (info_of(env, name) / "METADATA").unlink()


def doubled(env: Path, name: str) -> None:
    """Let a second dist-info stand beside it, as two installers leave it."""
    info = info_of(env, name)
    shutil.copytree(info, info.with_name(f"{info.name.partition('-')[0]}-0.0.1.dist-info"))


def replace_file(path: Path, text: str) -> None:
    """Write a file anew: what stands there may be one with the installer's cache."""
    path.unlink(missing_ok=True)
    path.write_text(text)


def half_removed(env: Path, name: str) -> None:
    """Lose half of its files, and leave what pip leaves of a removal."""
    files = sorted(p for p in module_of(env, name).rglob("*.py"))
    for path in files[: len(files) // 2 + 1]:
        path.unlink()
    (site_of(env) / f"~{name[1:]}").mkdir()


def overwritten(env: Path, name: str) -> None:
    """Put another module of the same name over it."""
    replace_file(module_of(env, name) / "__init__.py", "raise ImportError('shadowed')\n")


def cut_short(env: Path, name: str) -> None:
    """Leave files empty, as a full disk does."""
    for path in sorted(module_of(env, name).rglob("*.py"))[:3]:
        replace_file(path, "")


def mixed_cuda(env: Path, name: str) -> None:
    """Install a CUDA library for two CUDA majors over each other."""
    for one in ("nvidia-nvtx-cu12", "nvidia-nvtx-cu11"):
        run(str(UV), "pip", "install", "-q", "--python", str(env / "bin/python"), one)


SOFT = ("idna", "urllib3", "werkzeug", "jinja2", "click", "h11", "pygments", "rich", "flask", "requests")
WAYS: dict[Callable[[Path, str], None], tuple[str, ...]] = {
    older: tuple(OLD),
    without: ("idna", "urllib3", "markupsafe", "click", "h11", "mdurl"),
    no_record: SOFT[:4],
    no_metadata: SOFT[2:5],
    doubled: SOFT[4:8],
    half_removed: SOFT[:5],
    overwritten: SOFT[5:],
    cut_short: SOFT[1:4],
    mixed_cuda: ("",),
}


def mend(world: World, count: int) -> None:
    """Print how many broken environments are mended, verified and undone exactly."""
    cases = [(way, name) for way, names in WAYS.items() for name in names]
    mended = exact = 0
    times = []
    for way, name in cases[:count]:
        env = world.make(PACKAGES)
        way(env, name)
        before = states(env)
        start = time.monotonic()
        done = fix(env, "--apply", "--quiet")
        times.append(time.monotonic() - start)
        works = done.returncode == 0 and imports(env) and consistent(env)
        mended += works
        if states(env) != before:
            fix(env, "--undo", "--quiet")
        astray = differing(before, states(env))
        exact += not astray
        if astray:
            print(f"  not undone exactly: {way.__name__} {name}: {len(astray)}: {astray[:4]}", flush=True)
        if not works:
            said = (done.stderr or done.stdout).strip().splitlines()[:3]
            print(f"  not mended: {way.__name__} {name}: {done.returncode} {said}", flush=True)
        remove(env)
    total = len(cases[:count])
    middle = sorted(times)[len(times) // 2]
    print(
        f"mended and verified: {mended} of {total}; undone exactly: {exact} of {total}; median {middle:.1f} s"
    )


def differing(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Return the paths that are not as they were."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def imports(env: Path) -> bool:
    """True when every package's modules can be imported."""
    names = [d.name.partition("-")[0] for d in site_of(env).glob("*.dist-info")]
    modules = {
        "pyyaml": "yaml",
        "python_dateutil": "dateutil",
        "attrs": "attr",
        "markdown_it_py": "markdown_it",
    }
    chosen = [modules.get(n.lower(), n.lower()) for n in names if not n.startswith("nvidia")]
    code = f"import importlib\nfor name in {chosen!r}: importlib.import_module(name)"
    done = run(str(env / "bin/python"), "-B", "-c", code)
    if done.returncode:
        print("   ", done.stderr.strip().splitlines()[-1:])
    return done.returncode == 0


def consistent(env: Path) -> bool:
    """True when every requirement is met."""
    return run(str(UV), "pip", "check", "--python", str(env / "bin/python")).returncode == 0


def remove(env: Path) -> None:
    """Remove an environment and what stands beside it."""
    shutil.rmtree(env, ignore_errors=True)
    shutil.rmtree(env.parent / f".{env.name}.envdoctor", ignore_errors=True)


def tiny(folder: Path) -> tuple[Path, dict[str, str]]:
    """Make a broken environment of tiny wheels; return it and the variables that lead to the wheels."""
    wheels = folder / "wheels"
    wheels.mkdir(parents=True)
    make_wheel(wheels, "alphaline", "1.0", ["betaline>=2"])
    make_wheel(wheels, "betaline", "1.0")
    make_wheel(wheels, "betaline", "2.1")
    cache = str(folder.parent / "uv-cache")
    told = {"UV_FIND_LINKS": str(wheels), "UV_NO_INDEX": "1", "UV_CACHE_DIR": cache}
    os.environ.update(told)
    try:
        python = make_environment(folder / "env", "alphaline==1.0", "betaline==1.0")
    finally:
        for name in told:
            del os.environ[name]
    return python.parents[1], told


def kills(world: World, count: int, seed: int = 22) -> None:
    """Print how often the environment is as it was after a kill, or can be gone back to."""
    draw = random.Random(seed)
    env, told = tiny(world.folder / "kills")
    before = fingerprint(env)
    start = time.monotonic()
    fix(env, "--apply", "--quiet", **told)
    whole = time.monotonic() - start
    fix(env, "--undo", "--quiet", **told)
    intact = after = 0
    door = str(Path(sys.executable).with_name("envdoctor"))
    for _ in range(count):
        argv = [door, "fix", "--apply", "--quiet", "--python", str(env / "bin/python")]
        child = subprocess.Popen(argv, env={**os.environ, **told}, stdout=-3, stderr=-3)
        time.sleep(draw.uniform(0, 1.1 * whole))
        child.send_signal(signal.SIGKILL)
        child.wait()
        if fingerprint(env) != before:
            after += 1
            fix(env, "--undo", "--quiet", **told)
        intact += fingerprint(env) == before
    print(f"killed {count} times within {1.1 * whole:.1f} s: {intact} as it was, {after} of them by --undo")


def full(world: World) -> None:
    """Print whether a full file system leaves the environment as it was."""
    place = world.folder / "full"
    place.mkdir()
    intact = tried = mended = 0
    for spare in (0, 1 << 16, 1 << 17, 1 << 18, 1 << 19, 1 << 20, 1 << 21, 1 << 23):
        if run("mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(place)).returncode:
            print("full file system: not tried, it needs root")
            return
        try:
            env, told = tiny(place / "a")
            before = fingerprint(env)
            room = os.statvfs(place)
            with open(place / "ballast", "wb") as stream:
                left = room.f_bavail * room.f_frsize - spare
                stream.write(b"\0" * max(0, left))
            done = fix(env, "--apply", "--quiet", **told)
            tried += 1
            mended += done.returncode == 0
            if done.returncode == 0:
                fix(env, "--undo", "--quiet", **told)
            intact += fingerprint(env) == before
        finally:
            run("umount", str(place))
    print(f"full file system, {tried} sizes: {intact} as it was (in {mended} there was room enough)")


FAULTS = ("refused", "error", "empty", "cut", "silent", "rubbish")


class Faulty(http.server.BaseHTTPRequestHandler):
    """An index on loopback that fails in one way."""

    fault = "error"

    def do_GET(self) -> None:
        """Answer as the fault has it."""
        if self.fault == "error":
            self.send_error(500)
        elif self.fault == "empty":
            self._send(b"<html></html>")
        elif self.fault == "rubbish":
            name = self.path.strip("/").rpartition("/")[2]
            wheel = f"{name.replace('-', '_')}-9.9-py3-none-any.whl"
            page = f'<html><a href="/files/{wheel}">{wheel}</a></html>'.encode()
            self._send(b"no wheel" if self.path.startswith("/files") else page)
        elif self.fault == "cut":
            self.send_response(200)
            self.send_header("Content-Length", "100000")
            self.end_headers()
            self.wfile.write(b"<html>")
        else:
            time.sleep(3)

    def _send(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def index(world: World) -> None:
    """Print whether an index that fails leaves the environment as it was."""
    intact = 0
    for fault in FAULTS:
        env = world.make(["requests"])
        older(env, "idna")
        before = fingerprint(env)
        Faulty.fault = fault
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Faulty)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        port = 9 if fault == "refused" else server.server_port
        told = {"UV_DEFAULT_INDEX": f"http://127.0.0.1:{port}/simple", "UV_HTTP_TIMEOUT": "1"}
        done = fix(env, "--apply", "--quiet", UV_CACHE_DIR=str(world.folder / "cold"), **told)
        server.shutdown()
        same = fingerprint(env) == before
        intact += same and done.returncode == 3
        if not same or done.returncode != 3:
            print(f"  {fault}: {done.returncode} {done.stderr.strip()[:200]}")
        remove(env)
    print(f"index faults: {intact} of {len(FAULTS)} left as it was, exit 3")


def large(world: World, count: int) -> None:
    """Print how long a large environment takes with a warm cache."""
    env = world.make([*PACKAGES, *LARGE][:count])
    packages = len(list(site_of(env).glob("*.dist-info")))
    for name in ("idna", "urllib3", "click"):
        older(env, name)
    warm = world.make([*PACKAGES, *LARGE][:count])
    remove(warm)
    before = fingerprint(env)
    start = time.monotonic()
    done = fix(env, "--apply", "--quiet")
    spent = time.monotonic() - start
    files = sum(1 for p in env.rglob("*") if p.is_file())
    told = f"exit {done.returncode} in {spent:.1f} s; {done.stderr.strip()[:200]}"
    print(f"{packages} packages, {files} files: {told}")
    fix(env, "--undo", "--quiet")
    print(f"  undone exactly: {fingerprint(env) == before}")


def chosen(args: argparse.Namespace, world: World) -> Iterator[Callable[[], None]]:
    """Yield the parts that are asked for."""
    parts = {
        "mend": lambda: mend(world, args.environments),
        "kills": lambda: kills(world, args.kills),
        "full": lambda: full(world),
        "index": lambda: index(world),
        "large": lambda: large(world, args.large),
    }
    yield from (parts[name] for name in args.only.split(","))


def main() -> int:
    """Print the figures of each part."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--environments", type=int, default=100)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--large", type=int, default=60)
    parser.add_argument("--only", default="mend,kills,full,index,large")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for part in chosen(args, World(Path(folder))):
            part()
    return 0


if __name__ == "__main__":
    sys.exit(main())
