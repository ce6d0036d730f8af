"""What runs on a node, sent there as source: takes the probes from standard input, answers in short lines.

Standard library and Python 3.8 only. Nothing is left behind: the probes lie in memory, or in a file that is
gone before they run. What not every node needs is imported where it is: an import costs more than most facts.
"""

from __future__ import annotations

import os
import sys
import zlib

LINE = 900  # launchers that prefix lines cut longer ones


def land(compiled: int, sources: int, same: bool, limit_s: int, python: str | None, smokes: int = 0) -> None:
    """Read so many bytes of probes, examine this machine and print its facts; end after `limit_s` seconds.

    `same`: this Python takes them as they were compiled; another one takes their sources.
    """
    import _signal  # type: ignore[import-not-found]  # `signal` makes enumerations of it, which takes longer

    if smokes:  # they need a folder, which must go even when this ends early
        for cause in (_signal.SIGALRM, _signal.SIGTERM, _signal.SIGHUP):
            _signal.signal(cause, give_up)
    _signal.alarm(limit_s)
    modules, archive, more = receive(compiled), receive(sources), receive(smokes)
    path = keep(archive)
    if same:
        sys.meta_path.insert(0, Modules(modules, path))
    else:
        sys.path.insert(0, path)
    from envdoctor_probes import NoInterpreter, read_machine  # type: ignore[import-not-found]

    try:
        facts = read_machine(python)
    except NoInterpreter as error:
        sys.exit(f"envdoctor: --python: {error}")
    if more:
        facts["verdicts"] = smoke(more, facts["environment"].get("executable", {}).get("value"), limit_s)
    import json

    answer(json.dumps(facts, indent=1).encode())
    sys.stdout.flush()
    os._exit(0)  # a probe that hangs in the kernel must not keep the process alive


class Modules:
    """Finds the compiled probes, which stand in memory as if they lay in the archive at `path`."""

    def __init__(self, packed: bytes, path: str) -> None:
        import marshal

        self.codes, self.path = marshal.loads(zlib.decompress(packed)), path

    def find_spec(self, name: str, *_: object):  # type: ignore[no-untyped-def]
        """Return where a module of ours is, None for any other."""
        if name not in self.codes:
            return None
        package, _code = self.codes[name]
        origin = f"{self.path}/{name.replace('.', '/')}{'/__init__' if package else ''}.py"
        spec = type(sys.__spec__)(name, self, origin=origin, is_package=package)  # type: ignore[arg-type]
        spec.has_location = True
        return spec

    def create_module(self, _: object) -> None:
        """Let modules be made as usual."""

    def exec_module(self, module) -> None:  # type: ignore[no-untyped-def]
        """Run a module's code."""
        exec(self.codes[module.__name__][1], module.__dict__)


def receive(size: int) -> bytes:
    """Return the next `size` bytes that were sent."""
    data = sys.stdin.buffer.read(size)
    if len(data) < size:
        sys.exit(f"envdoctor: the probe arrived cut: {len(data)} of {size} bytes")
    return data


def give_up(*_: object) -> None:
    """End at the deadline, but not without clearing away."""
    raise TimeoutError("ended early, at the deadline of this node or from outside")


def smoke(archive: bytes, python: str | None, limit_s: int) -> list[dict[str, object]]:
    """Run the smokes and the speeds from a folder that is gone afterwards; return the verdicts that came."""
    if sys.version_info < (3, 10):  # noqa: UP036 (a node may have an older one)
        version = sys.version.split()[0]
        return [verdict("smoke", "skipped", f"smokes need Python 3.10 or later there, this is {version}")]
    import io
    import tempfile
    import zipfile

    told: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="envdoctor-") as folder:
        with zipfile.ZipFile(io.BytesIO(archive)) as packed:
            packed.extractall(folder)
        sys.path.insert(0, folder)
        try:
            from envdoctor.facts.codec import encode  # type: ignore[import-not-found,unused-ignore]
            from envdoctor.smokes import run_smokes

            def tell(one) -> None:  # type: ignore[no-untyped-def]
                found = verdict(one.label, one.outcome, one.reason)
                told.append(found if one.speed is None else dict(found, speed=encode(one.speed)))

            chosen = ("quick", "bandwidth")
            run_smokes(python or sys.executable, chosen, timeout_s=max(5, limit_s / 4), dcgm=True, tell=tell)
        except TimeoutError as error:
            told.append(verdict("smoke", "timeout", str(error)))
        except Exception as error:
            told.append(verdict("smoke", "crashed", f"{type(error).__name__}: {error}"))
        return told


def verdict(op: str, outcome: str, reason: str | None) -> dict[str, object]:
    """Return a verdict in the terms of facts."""
    told: dict[str, object] = {"op": op, "outcome": outcome, "source": "smoke"}
    return told if reason is None else dict(told, reason=reason)


def keep(archive: bytes) -> str:
    """Return a path that leads to the archive and vanishes with this process."""
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("envdoctor")
    else:
        import tempfile

        handle, path = tempfile.mkstemp()
        os.unlink(path)
    os.write(handle, archive)
    return f"/proc/self/fd/{handle}" if os.path.isdir("/proc/self/fd") else f"/dev/fd/{handle}"


def answer(text: bytes) -> None:
    """Print a text as framed lines that stay whole among others' output."""
    node = os.environ.get("SLURMD_NODENAME") or os.uname().nodename
    import binascii

    packed = binascii.b2a_base64(zlib.compress(text, 6), newline=False).decode()
    parts = [packed[i : i + LINE] for i in range(0, len(packed), LINE)]
    for number, part in enumerate(parts, 1):
        sys.stdout.write(f"envdoctor:{node}:{number}/{len(parts)}:{part}\n")
