"""Requirement files of public projects, each pinned for two targets.

    python benchmarks/request_files.py FOLDER [--out FILE] [--only PATTERN] [--doubtful FILE]

FOLDER holds PROJECT/DAY folders, each with the files as the project had them and `ASK`, their names in
lines. Of each answer: was it solved, or is the conflict one that uv has, too (or one of the card, the driver
or a row, which uv does not know); does uv accept the pins; is a name asked for older than in uv's answer
without a reason; and is anything refused. uv needs the index, PyTorch's own is not asked: of a set with a
build from there, what that build brings of CUDA's is not held against uv. A conflict of which uv, given the
whole file, did not judge is held against it once more: of the lines alone that the conflict names. What uv
finds fault with there is proven; what it takes is ours alone, and printed with each cause and its source.
Where uv would have to build a package to learn what it requires, it is told that, as its sdist states it; a
line that is no requirement is left out for it. Of a card's or driver's conflict uv is told which releases of
torch cannot run there, and asked to find the same; of a project's own bound on Python, a project with it.
`--doubtful` asks again what an earlier `--out` has as ours alone.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from packaging.version import Version

from envdoctor.api import _goal
from envdoctor.harvest.refresh import lookup_for
from envdoctor.matrix import load_matrix
from envdoctor.matrix.snapshot import load_snapshot
from envdoctor.solve.asking import Wish
from envdoctor.solve.nodes import Node
from envdoctor.target.resolve import Declared

PLATFORM = "x86_64-manylinux_2_35"
FACTS = load_snapshot(load_matrix().folder).date
"""The day of the package facts in force: what came out later is asked of neither."""
EARLY = re.compile(r"Consider using a higher `--python-version` value")
"""What uv says where a package wants a later release of a Python than its first."""
UNRUN = re.compile(r"in run_setup\b")
"""What uv says of a `setup.py` that does not run in an environment of its own."""
UNREACHED = re.compile(
    "Failed to (resolve requirements|build|fetch|parse)|Distribution not found|not found in the|Git operation"
)
"""What uv says of a place out of reach, of a build that lacks the rest of the project, of an unknown name."""
CLASH = re.compile("No solution found|unsatisfiable|conflicting")
"""What uv says of lines that cannot stand together."""
TARGETS = {
    "2022": (("RTX 3090", "510.47.03", "3.9"), ("A100", "515.65.01", "3.9"), ("T4", "515.65.01", "3.10")),
    "2023": (
        *(("RTX 3090", "525.125.06", "3.10"), ("A100", "535.54.03", "3.10")),
        ("RTX 4090", "535.129.03", "3.10"),
    ),
    "2024": (
        ("RTX 4090", "550.54.14", "3.10"),
        ("A100", "535.129.03", "3.10"),
        ("H100", "550.90.07", "3.11"),
    ),
    "2025": (("RTX 4090", "560.35.03", "3.11"), ("A100", "550.54.14", "3.10"), ("H100", "570.86.15", "3.12")),
    "2026": (
        ("B200", "580.65.06", "3.12"),
        ("H100", "570.124.06", "3.11"),
        ("RTX 5090", "580.82.07", "3.12"),
    ),
}
"""Cards, drivers and Pythons that people had in a year; each file of it is asked for two of the three."""
OWN_PYTHON = re.compile("the project needs Python (.+); the target has")
UNPARSED = re.compile(r"Couldn't parse requirement[^\n]*\n\s*cause:[^\n]*\n(?:\s*\n)?([^\n]+)\n\s*\^")
UNBUILT = re.compile(r"Failed to build `([\w.-]+)==([^`]+)`")
STATED = '[[dependency-metadata]]\nname = "{}"\nversion = "{}"\nrequires-dist = {}\n'
UV_READS = re.compile(r"(requirements.*\.txt|pyproject\.toml|setup\.py)$")


@dataclass(frozen=True)
class Judged:
    """What became of a file on a target."""

    file: str
    card: str
    kind: str
    """solved; a conflict of uv's, of the card's or of a row's (what no metadata tells); or what is wrong."""
    said: str = ""
    older: tuple[str, ...] = ()
    torch: str = ""


def run(*words: str, cwd: str = "/") -> subprocess.CompletedProcess[str]:
    """Run a command; one that takes too long has the code 124."""
    try:
        return subprocess.run(words, capture_output=True, text=True, check=False, timeout=240, cwd=cwd)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, 124, "", "took too long")


def ours(file: Path, python: str, *more: str) -> subprocess.CompletedProcess[str]:
    """Ask for pins of a file."""
    told = ("--python-version", python, "--platform", PLATFORM, "--allow-source", "--format", "json")
    return run(sys.executable, "-m", "envdoctor", "pin", "-r", str(file), *told, *more)


def uvs(file: Path, python: str, *more: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Ask uv; it takes the newest of all indexes, as pip does, and PyTorch's own is left out.

    `cwd` is the project whose settings count, where the file is not its own.
    """
    told = (*uv_words(python), *more)
    if file.suffix != ".txt":
        return compiled(file, *told, cwd=cwd or file.parent)
    beyond = re.compile(r"download\.pytorch\.org|git\+|^\s*(-e|--editable)\b|^\s*\.")
    lines = [one for one in _text(file).splitlines() if not beyond.search(one)]
    copy = file.with_suffix(".in")
    copy.write_text(re.sub(r"\+(cu\d{2,3}|cpu)\b", "", "\n".join(lines)) + "\n")
    return compiled(copy, *told, cwd=cwd or file.parent)


def compiled(file: Path, *told: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Ask uv, again without a line that it cannot read, or with what it would have to build to learn."""
    stated: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "uv.toml"
        while True:
            words = ("--config-file", str(config)) if stated else ()
            done = run("uv", "pip", "compile", str(file), *told, *words, cwd=str(cwd))
            if (line := UNPARSED.search(done.stderr)) and file.with_suffix(".txt").is_file():
                lines = file.read_text().splitlines()
                left = [one for one in lines if one.strip() != line[1].strip()]
                if len(left) == len(lines):
                    return done
                file.write_text("".join(f"{one}\n" for one in left))
            elif (built := UNBUILT.search(done.stderr)) and built[0] not in stated:
                told_of = json.dumps(metadata_of(built[1], built[2]))
                stated[built[0]] = STATED.format(built[1], built[2], told_of)
                config.write_text("".join(stated.values()))
            else:
                return done


def metadata_of(name: str, version: str) -> list[str]:
    """Return what a release requires, as its sdist states it; nothing where it states nothing."""
    found = lookup_for(None, False, lambda _: False).find({name: {f"=={version}"}})
    releases = found.records.get(name, {}).get("releases", {})
    return releases.get(version, {}).get("requires") or []


def _text(file: Path) -> str:
    """Return a file's text; PowerShell writes UTF-16."""
    data = file.read_bytes()
    return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")


def uv_words(python: str) -> tuple[str, ...]:
    """Return what uv is told of a target."""
    told = ("--python-version", python, "--python-platform", PLATFORM, "--no-header", "--no-annotate", "-q")
    return (*told, "--index-strategy", "unsafe-best-match", "--exclude-newer", FACTS)


def clashes(done: subprocess.CompletedProcess[str]) -> bool:
    """True when uv found that lines cannot stand together."""
    return done.returncode not in (0, 124) and bool(CLASH.search(done.stderr))


def proven(causes: list[dict[str, str]], python: str, cwd: Path) -> str:
    """Return what uv says against the lines alone that a conflict names; empty where it takes them."""
    texts = [re.sub(r"\+(cu\d{2,3}|cpu)\b", "", one["text"]) for one in causes if one["kind"] == "request"]
    lines, bounds = (
        [one.removesuffix(end) for one in texts if one.endswith(end)]
        for end in (" is asked for", " is a constraint")
    )
    with tempfile.TemporaryDirectory() as folder:
        if own := next(filter(None, (OWN_PYTHON.match(one["text"]) for one in causes)), None):
            project = f'[project]\nname = "project"\nversion = "1"\nrequires-python = "{own[1]}"\n'
            (Path(folder) / "pyproject.toml").write_text(project)
            checked = run("uv", "lock", "--dry-run", "--python", python, cwd=folder)
            return checked.stderr.strip()[-300:] if "incompatible" in checked.stderr else ""
        named, bound = Path(folder) / "named.in", Path(folder) / "bound.txt"
        named.write_text("\n".join(lines) + "\n")
        bound.write_text("\n".join(bounds) + "\n")
        told = (str(named), "-c", str(bound), *uv_words(python))
        checked = run("uv", "pip", "compile", *told, cwd=str(cwd))
        if clashes(checked):
            return checked.stderr.strip()[-300:]
        if any(one["source"].endswith("Requires-Python") for one in causes):
            refused = pips(lines, python, folder)
            return f"(pip: uv minds no upper bound on Python) {refused}" if refused else ""
    return ""


def without_barred(file: Path, card: str, driver: str, python: str) -> subprocess.CompletedProcess[str]:
    """Ask uv for a file without the releases of torch of which no build runs on the card and driver."""
    wish = Wish((), (str(file),), False, None, True, None, True)
    node = _goal(wish, None, Declared((card,), driver, python, PLATFORM)).context.node("torch")
    with tempfile.TemporaryDirectory() as folder:
        bound = Path(folder) / "bound.txt"
        if node is not None:
            barred = [version for place, version in enumerate(node.package.versions) if _bars(node, place)]
            bound.write_text("torch" + ",".join(f"!={version}" for version in barred) + "\n")
        return uvs(file, python, "-c", str(bound))


def _bars(node: Node, place: int) -> bool:
    """True where every build of a release is ruled out by what is no matter of the index or of Python."""
    held = node.expand(1 << place)
    for ban in node.bans:
        held &= ~ban.mask if ban.subject and ban.what != "constraint" else held
    return not held


def pips(lines: list[str], python: str, folder: str) -> str:
    """Return what pip says of lines of which no release is for a Python; empty where it takes them."""
    words = ("download", "-q", "--no-deps", "--no-build-isolation", "--python-version", python, "-d", folder)
    for line in lines:
        done = run(sys.executable, "-m", "pip", *words, line)
        if "Could not find a version" in done.stderr:
            return done.stderr.strip()[-300:]
    return ""


def pins_of(text: str) -> dict[str, str]:
    """Return the pins in uv's answer."""
    return dict(re.findall(r"^([a-z0-9][a-z0-9.-]*)==([^\s;]+)", text, re.MULTILINE))


def shown(file: Path) -> str:
    """Return a file as its project, day and name."""
    return f"{file.parent.parent.name}/{file.parent.name}/{file.name}"


def doubtful(out: Path) -> set[tuple[str, str]]:
    """Return the files and cards of the conflicts that an earlier run found to be ours alone."""
    told = map(json.loads, out.read_text().splitlines())
    return {(one["file"], one["card"]) for one in told if one["kind"] == "conflict of ours alone"}


def judge(file: Path, card: str, driver: str, python: str) -> Judged:
    """Pin a file for a target, and hold the answer against uv's."""
    name = shown(file)
    done = ours(file, python, "--gpu", card, "--driver", driver)
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        return Judged(name, card, "refused", f"{done.returncode} {done.stderr.strip()[-400:]}")
    if answer["status"] == "solved":
        return _solved(name, card, file, python, answer)
    causes = (answer.get("conflict") or {}).get("causes", [])
    said = " / ".join(one["text"] for one in causes)
    if answer["status"] not in ("conflict", "split"):
        return Judged(name, card, answer["status"], f"{said} {done.stderr.strip()[-300:]}")
    if UV_READS.search(file.name):
        theirs = uvs(file, python)
        if clashes(theirs) and not UNREACHED.search(theirs.stderr):
            return Judged(name, card, "uv's conflict", f"{said} || {theirs.stderr.strip()[-300:]}")
    kinds = {one["kind"] for one in causes}
    if any(re.search("cannot run|driver", one["text"]) for one in causes):
        theirs = without_barred(file, card, driver, python)
        kind = "the card's conflict, as uv finds" if clashes(theirs) else "the card's conflict"
        return Judged(name, card, kind, f"{said} || {theirs.stderr.strip()[-300:]}")
    if "row" in kinds:
        return Judged(name, card, "a row's conflict", said)
    if theirs_of_those := proven(causes, python, file.parent):
        return Judged(name, card, "uv's conflict", f"{said} || of the named lines: {theirs_of_those}")
    sourced = " / ".join(f"{one['text']} [{one['source']}]" for one in causes)
    return Judged(name, card, "conflict of ours alone", sourced)


def _solved(name: str, card: str, file: Path, python: str, answer: dict) -> Judged:  # type: ignore[type-arg]
    mine = {one["name"]: one["version"] for one in answer["pins"]}
    reasons = {
        one["name"]: [b for b in one["because"] if "not " in b or b.startswith("held to")]
        for one in answer["pins"]
    }
    with tempfile.TemporaryDirectory() as folder:
        pins = Path(folder) / "pins.txt"
        of_variant = any(one["index"] for one in answer["pins"])
        kept = {n: v for n, v in mine.items() if not (of_variant and re.match("nvidia-|cuda-|triton", n))}
        pins.write_text("".join(f"{n}=={v}\n" for n, v in kept.items()))
        read = bool(UV_READS.search(file.name))
        checked = uvs(file, python, "-c", str(pins)) if read else uvs(pins, python, cwd=file.parent)
        if EARLY.search(checked.stderr):  # uv takes 3.11 for 3.11.0: the answer says what it needs
            python = f"{python}.99"
            checked = uvs(file, python, "-c", str(pins)) if read else uvs(pins, python, cwd=file.parent)
        if UNREACHED.search(checked.stderr) or UNRUN.search(checked.stderr):
            checked = uvs(
                pins, python, cwd=file.parent
            )  # what only a build or a place out of reach would tell
    torch = mine.get("torch", "")
    if checked.returncode:
        kind = "solved, unread by uv" if UNREACHED.search(checked.stderr) else "uv refuses"
        return Judged(name, card, kind, checked.stderr.strip()[-500:], (), torch)
    theirs = uvs(file, python) if UV_READS.search(file.name) else None
    got = pins_of(theirs.stdout) if theirs and not theirs.returncode else {}
    asked = {one["name"] for one in answer["pins"] if any("asked for" in why for why in one["because"])}
    older = tuple(
        f"{n} {mine[n]} < {got[n]}"
        for n in sorted(set(mine) & set(got))
        if n in asked and Version(mine[n]) < Version(got[n]) and not reasons[n]
    )
    return Judged(name, card, "solved", "", older, torch)


def main() -> None:
    """Print a line for each that is neither solved nor confirmed, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", default="", help="files whose path this pattern finds")
    parser.add_argument("--doubtful", type=Path, help="an earlier --out: only what it has as ours alone")
    args = parser.parse_args()
    meant = doubtful(args.doubtful) if args.doubtful else None
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    files = [
        asked.parent / line
        for asked in sorted(args.folder.glob("*/*/ASK"))
        for line in dict.fromkeys(asked.read_text().split())
        if re.search(args.only, f"{asked.parent}/{line}")
    ]
    told: collections.Counter[str] = collections.Counter()
    older = 0
    for file in files:
        left_out = hashlib.sha256(str(file.parent.name + file.name).encode()).digest()[0] % 3
        targets = TARGETS[file.relative_to(args.folder).parts[1][:4]]
        for target in (one for place, one in enumerate(targets) if place != left_out):
            if meant is not None and (shown(file), target[0]) not in meant:
                continue
            one = judge(file, *target)
            told[one.kind] += 1
            older += bool(one.older)
            if args.out:
                with args.out.open("a") as out:
                    out.write(json.dumps(asdict(one)) + "\n")
            if one.kind != "solved" or one.older:
                length = 2000 if "alone" in one.kind else 300
                print(f"{one.kind}: {one.file} {one.card}: {one.said[:length]} {one.older}", flush=True)
    good = sum(count for kind, count in told.items() if kind == "solved" or "'s conflict" in kind)
    print(
        f"{good} of {sum(told.values())} solved or a proven conflict; {dict(told)}; older unsaid in {older}"
    )


if __name__ == "__main__":
    main()
