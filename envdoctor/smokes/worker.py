"""The worker: runs in the examined interpreter, takes one op a line on its input, answers one JSON line each.

`worker.py list FILE` writes the ops there and imports no torch; `worker.py serve` serves. Runs under any
Python from 3.8. Answers go through a private copy of standard output and open with the token of our parent:
what the start of this Python printed before is none of them. What an op prints lands on standard error.
"""

from __future__ import annotations

import ctypes
import fcntl
import importlib
import importlib.util
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = "envdoctor_smokes"
GROUP = "envdoctor.smokes"
PR_SET_PDEATHSIG = 1
MARKS_OF_TORCH = ("__version__", "set_num_threads", "cuda", "float64", "tensor")
"""What every torch has: a folder that an upgrade left, or another package of that name, has not."""
sys.dont_write_bytecode = True  # the examined environment stays as it was


def load_part(name: str) -> Any:
    """Import a file or folder beside this one as a part of a package that shadows nothing there."""
    if PACKAGE not in sys.modules:
        spec = importlib.util.spec_from_loader(PACKAGE, None, is_package=True)
        sys.modules[PACKAGE] = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
        sys.modules[PACKAGE].__path__ = [HERE]
    return importlib.import_module(PACKAGE + "." + name)


def load_third_party(op: Callable[..., Any]) -> list[str]:
    """Call every entry point of the group with the `op` decorator; return what went wrong."""
    try:
        from importlib.metadata import entry_points
    except ImportError:
        return []
    found = entry_points()
    chosen = found.select(group=GROUP) if hasattr(found, "select") else found.get(GROUP, ())
    troubles = []
    for entry in chosen:
        try:
            entry.load()(op)
        except Exception as error:
            troubles.append(f"entry point {entry.name}: {type(error).__name__}: {error}")
    return troubles


def private_channels() -> Any:
    """Return (requests, answers) on descriptors of our own; 0 becomes empty, 1 becomes standard error."""
    requests = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 10)
    answers = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 10)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    return os.fdopen(requests, "r"), os.fdopen(answers, "w")


def die_with_parent(parent: int) -> None:
    """Have the kernel end us when the parent's thread is gone; where it cannot, the keeper will."""
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    except (OSError, AttributeError):
        return
    if os.getppid() != parent:
        os._exit(1)


def serve(order: dict[str, Any]) -> None:
    """Import torch, start CUDA, tell what is there, and answer requests until the input ends."""
    requests, answers = private_channels()
    answers.write("\n" + order["token"] + "\n")
    answers.flush()

    def say(event: str, **fields: Any) -> None:
        answers.write(json.dumps(dict(fields, event=event)) + "\n")
        answers.flush()

    ops = load_part("ops").load()
    measure = load_part("measure")
    say("phase", phase="importing torch")
    if measure.missing_need(("torch",)):
        return say("unready", outcome="skipped", reason="torch is not installed")
    try:
        import torch
    except BaseException as error:
        return say("unready", outcome="failed", reason="torch does not import: " + measure.describe(error))
    lacking = [name for name in MARKS_OF_TORCH if not hasattr(torch, name)]
    if lacking:
        where = getattr(torch, "__file__", None) or "a folder without code"
        reason = f"torch is not whole: it has no {lacking[0]} ({where})"
        return say("unready", outcome="failed", reason=reason)
    torch.set_num_threads(1)  # the references are tiny; threads of several workers would only queue
    if order["device"] == "cpu":
        say("ready", torch=torch.__version__, devices=[])
    else:
        say("phase", phase="starting CUDA")
        say("ready", torch=torch.__version__, **start_cuda(torch, measure.describe))
    for line in requests:
        request = json.loads(line)
        if request["op"] not in ops:
            load_third_party(load_part("ops.registry").op)
        say("result", **run_request(request, order, torch, ops[request["op"]], say))


def start_cuda(torch: Any, describe: Callable[[BaseException], str]) -> dict[str, Any]:
    """Return the names of the visible cards, or why torch has none."""
    try:
        torch.cuda.init()
        count = torch.cuda.device_count()
        return {"devices": [torch.cuda.get_device_name(index) for index in range(count)]}
    except Exception as error:
        return {"devices": [], "reason": describe(error)}


def run_request(
    request: dict[str, Any], order: dict[str, Any], torch: Any, op: Any, say: Callable[..., None]
) -> dict[str, Any]:
    """Run one op on the cards of the request and return its verdict."""
    gpus = tuple(request["gpus"])
    device = f"cuda:{gpus[0]}" if gpus else "cpu"
    scratch = os.environ.get("TMPDIR", ".")
    context = load_part("ops.context").Context(torch, device, gpus, order["build"], scratch)
    skip = load_part("ops.registry").Skip
    return load_part("measure").run_op(op, context, skip, lambda phase: say("phase", phase=phase))  # type: ignore[no-any-return]


def list_ops(path: str) -> None:
    """Write which ops there are, and end at once: threads and exit handlers of others are not waited for."""
    private_channels()
    ops = load_part("ops").load()
    troubles = load_third_party(load_part("ops.registry").op)
    missing = load_part("measure").missing_need
    entries = [
        dict(op.describe(), missing=missing([name.split(".")[0] for name in op.needs])) for op in ops.values()
    ]
    answer = json.dumps({"ops": entries, "torch": not missing(["torch"]), "troubles": troubles})
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(answer)
    os._exit(0)


def main(arguments: list[str]) -> None:
    """Serve, or list the ops; our folder leaves the path, so that no module there is shadowed."""
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != HERE]
    if arguments[0] == "list":
        list_ops(arguments[1])
    order = json.loads(arguments[1])
    die_with_parent(order["parent"])
    serve(order)


if __name__ == "__main__":
    main(sys.argv[1:])
