"""`envdoctor pin`: versions that work together on a target, or why there are none."""

from __future__ import annotations

import argparse
import gc
import os
import re
import shlex
from typing import TYPE_CHECKING, Any

from envdoctor import __version__
from envdoctor.cli.output import look_of, note, write
from envdoctor.cli.parsing import add, add_flag, add_list
from envdoctor.report import Format, Pinned, as_json, draw, refuse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envdoctor.solve import documents
    from envdoctor.solve.answer import PinSet
    from envdoctor.solve.kept import Told


EXAMPLES = (
    ("versions that work together on this machine", "torch transformers flash-attn"),
    ("a requirements file, for a T4 with an old driver", "-r requirements.txt --gpu T4 --driver 525"),
    ("as a lock file", "vllm --gpu H100 --format pylock -o pylock.toml"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `pin`."""
    parser.add_argument("requests", nargs="*", metavar="REQ", help="such as torch or 'transformers>=5'")
    add_target_arguments(parser)
    goals = ("newest", "least-change")
    how = "newest: what fits; least-change: the fewest changes to what is installed"
    add(parser, "--goal", "GOAL", how, choices=goals, default=goals[0])
    add_list(parser, "--code", "PATH", "the code that it is for: no release that lost what this asks for")
    add_flag(parser, "--hashes", "write the hash of every file that installs (--format requirements)")


def add_target_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what `pin` and `why-not` share: the target and what may be chosen from."""
    add_list(parser, "-r", "FILE", "requirements file", dest="files")
    add(parser, "--target", "FILE", "facts, a diagnosis or a bundle of the machine to pin for")
    add_list(parser, "--gpu", "NAME|SM", "a card the pins must run on (repeatable)")
    add(parser, "--driver", "V", "NVIDIA driver version")
    add(parser, "--python-version", "X.Y", "Python version")
    add(parser, "--platform", "TAG", "platform, such as x86_64-manylinux_2_35")
    add(parser, "--exclude-newer", "DATE", "as if it were that day")
    add_flag(parser, "--allow-source", "allow releases without a fitting wheel")
    add(parser, "--index-url", "URL", "where unknown packages, and hashes for pylock, are looked up")
    add_flag(parser, "--offline", "use no network")


def target_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return what `add_target_arguments` declared, in the library's words."""
    names = ("files", "target", "driver", "python_version", "platform", "exclude_newer", "allow_source")
    told = {name: getattr(args, name) for name in (*names, "index_url", "offline")}
    return {"gpus": args.gpu, **told}


EXIT_CODES = {"solved": 0, "split": 1, "conflict": 1, "unknown": 3}


def run(args: argparse.Namespace) -> int:
    """Solve and write; 0 solved, 1 conflict or split, 3 where something is not known."""
    from envdoctor.solve.kept import place_of

    place = place_of(vars(args))
    told = place.read() if place else None
    if told is None:
        answer = _answer(args)
        unpinned = _is_unpinned(args, answer)
        if unpinned:
            _write_each(args, answer)
            args = _without_file(args, "each set has its own file" if answer.sets else "there are no pins")
        told, lasting = _told(args, answer, unpinned)
        if place and lasting:
            place.keep(told)
    write(args, told.text)
    for text in told.notes:
        note(args, text)
    return told.code


def _answer(args: argparse.Namespace) -> PinSet:
    from envdoctor.api import pin

    gc.disable()  # a short process: looking for garbage would take a tenth of its time
    least_change = args.goal == "least-change"
    return pin(args.requests, least_change=least_change, code=args.code, **target_of(args))


def _is_unpinned(args: argparse.Namespace, answer: PinSet) -> bool:
    """True for an answer that is no one set of pins, where a file of pins was asked for."""
    return bool(args.output) and args.format != "json" and answer.status in ("conflict", "unknown", "split")


def _write_each(args: argparse.Namespace, answer: PinSet) -> None:
    """Write each set of a split into a file named for what only it has, and say which is which."""
    for one in answer.sets:
        others = {word for other in answer.sets if other is not one for word in other.asked}
        own = next((word for word in one.asked if word not in others), one.asked[0])
        file = _beside(args.output, re.split(r"[^A-Za-z0-9._-]", own)[0])
        write(argparse.Namespace(**{**vars(args), "output": file}), _pins_text(args, one))
        note(args, f"{file}: the environment of {', '.join(one.asked)}")


def _beside(file: str, name: str) -> str:
    """Return the file of one set: `constraints.txt` is `constraints-vllm.txt`.

    What installers know by its name, `pylock.toml`, has the set's within: `pylock.vllm.toml`.
    """
    stem, suffix = os.path.splitext(file)
    between = "." if os.path.basename(stem).startswith("pylock") else "-"
    return f"{stem}{between}{name}{suffix}"


def _without_file(args: argparse.Namespace, why: str) -> argparse.Namespace:
    """Return the arguments for an answer on standard output; what the file held before, it keeps."""
    note(args, f"{args.output}: not written, {why}")
    return argparse.Namespace(**{**vars(args), "output": None})


def _told(args: argparse.Namespace, answer: PinSet, unpinned: bool) -> tuple[Told, bool]:
    """Return what is to be said, and whether it stays so while the request and the facts do."""
    from envdoctor.solve.kept import Told

    code = EXIT_CODES[answer.status] or (3 if answer.unjudged or answer.gaps else 0)
    lasting = answer.status == "solved" and code == 0 and not answer.looked_up
    return Told(_rendered(args, answer, unpinned), list(_notes(args, answer)), code), lasting


def _notes(args: argparse.Namespace, answer: PinSet) -> Iterator[str]:
    if answer.status in ("split", "conflict") and args.format != "json":
        yield "no single environment satisfies the request"
    if answer.status == "solved" and args.output and args.format != "json":
        from envdoctor.solve.summary import summary_lines

        typed = [*map(shlex.quote, args.requests), *(f"-r {shlex.quote(file)}" for file in args.files)]
        yield from summary_lines(answer, args.output, typed)
        yield from _unread_code(args)
    for one in answer.unjudged:
        where = f"{one.source}: " if one.source else ""
        yield f"{where}{one.shown}: not judged, it stays as it stands: {one.why}"
    yield from (*answer.gaps, *answer.notes)


def _unread_code(args: argparse.Namespace) -> Iterator[str]:
    """Yield that code stands beside a requirements file and was not asked what it needs."""
    folders = {os.path.dirname(file) or "." for file in args.files}
    for folder in sorted(folders) if not args.code else ():
        if any(name.endswith(".py") for name in os.listdir(folder)):
            yield f"code: not read; --code {shlex.quote(folder)} keeps what it imports and calls"
            return


def _rendered(args: argparse.Namespace, answer: PinSet, unpinned: bool) -> str:
    if args.format is Format.JSON:
        return _pins_text(args, answer)
    if answer.status in ("conflict", "unknown") or unpinned:
        from envdoctor.solve.report import conflict_document

        return draw(conflict_document(answer), Format.TEXT, look_of(args))
    if answer.status == "split":
        from envdoctor.solve.documents import split_text

        return split_text(answer, _header(args))
    return _pins_text(args, answer)


def _header(args: argparse.Namespace) -> documents.Header:
    from envdoctor.matrix import load_matrix
    from envdoctor.matrix.snapshot import load_snapshot
    from envdoctor.solve.documents import Header

    matrix = load_matrix()
    return Header(__version__, matrix.version, load_snapshot(matrix.folder).date, command_line(args))


def _pins_text(args: argparse.Namespace, answer: PinSet) -> str:
    """Return pins in the format that was asked for."""
    from envdoctor.solve import documents

    format: Pinned = args.format
    header = _header(args)
    match format:
        case Format.JSON:
            return as_json(answer.as_json())
        case Format.CONSTRAINTS:
            return documents.constraints_text(answer, header)
        case Format.REQUIREMENTS:
            return documents.requirements_text(answer, header, _hashes(args, answer))
        case Format.ENVIRONMENT:
            from envdoctor.solve.manifests import environment_text

            return environment_text(answer, header)
        case Format.UV:
            from envdoctor.solve.manifests import uv_text

            return uv_text(answer, header)
        case Format.PYLOCK:
            from envdoctor.solve.pylock import index_reader, pylock_text

            return pylock_text(answer, header, index_reader(args.index_url, args.offline))
    refuse(format)


def _hashes(args: argparse.Namespace, answer: PinSet) -> documents.Hashes | None:
    if not args.hashes:
        return None
    from envdoctor.solve.pylock import hashes_of, index_reader

    return hashes_of(answer, index_reader(args.index_url, args.offline))


def command_line(args: argparse.Namespace) -> str:
    """Return the command that gives this answer, without what only says where and how to write it."""
    words = ["envdoctor", "pin", *args.requests]
    for file in args.files:
        words += ["-r", file]
    for gpu in args.gpu:
        words += ["--gpu", gpu]
    for option in ("target", "driver", "python_version", "platform", "exclude_newer"):
        if value := getattr(args, option):
            words += [f"--{option.replace('_', '-')}", value]
    if args.goal != "newest":
        words += ["--goal", args.goal]
    for path in args.code:
        words += ["--code", path]
    return shlex.join([*words, *(["--allow-source"] if args.allow_source else [])])
