"""`envdoctor fix`: one plan, shown; with `--apply` carried out on a clone, verified, exchanged."""

from __future__ import annotations

import argparse

from envdoctor.cli.options import add, add_flag
from envdoctor.cli.output import Progress, look_of, write
from envdoctor.errors import InputError
from envdoctor.report import Format, as_json, draw

EXAMPLES = (
    ("what would change in the active environment", ""),
    ("mend another environment; a failure leaves it as it was", "--python .venv/bin/python --apply"),
    ("go back to the state before", "--python .venv/bin/python --undo"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `fix`."""
    add(parser, "--python", "PATH", "the interpreter whose environment is mended (default: the active one)")
    add_flag(parser, "--apply", "carry the plan out on a clone, verify it, and exchange the two")
    add_flag(parser, "--smoke", "with --apply: run the smoke kernels on the clone, too, before the exchange")
    written = "write the plan into a requirements file, pyproject.toml, environment.yml or Dockerfile"
    add(parser, "--lockfile", "FILE", f"{written}: the diff, and with --apply the file")
    kept = "go back to the last state, or to that of a number; again goes forward"
    add(parser, "--undo", "N", kept, nargs="?", type=int, const=0, default=None)


def run(args: argparse.Namespace) -> int:
    """Show, apply or undo; 0 mended or nothing to do, 1 something remains, 3 nothing was changed."""
    from envdoctor.fixing.fixing import apply_fix, show_fix, undo_fix
    from envdoctor.fixing.report import fix_document

    if args.undo is not None and (args.apply or args.smoke or args.lockfile):
        raise InputError("--undo: goes with none of --apply, --smoke and --lockfile")
    if args.lockfile:
        return _edit(args)
    line = Progress(args)
    if args.undo is not None:
        fixed = undo_fix(args.python, args.undo or None)
    elif args.apply:
        steps = iter(range(1, 100))
        fixed = apply_fix(args.python, smoke=args.smoke, step=lambda told: line.step(next(steps), 0, told))
    else:
        fixed = show_fix(args.python)
    line.end()
    if args.format is Format.JSON:
        write(args, as_json(fixed.to_json()))
    else:
        write(args, draw(fix_document(fixed), args.format, look_of(args)))
    return fixed.exit_code


def _edit(args: argparse.Namespace) -> int:
    from envdoctor.fixing.editing import edit_file
    from envdoctor.fixing.report import edit_document

    told = edit_file(args.lockfile, apply=args.apply)
    if args.format is Format.JSON:
        write(args, as_json(told.to_json()))
    else:
        write(args, draw(edit_document(told), args.format, look_of(args)))
    return told.exit_code
