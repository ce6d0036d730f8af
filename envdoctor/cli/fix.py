"""`envdoctor fix`: one plan, shown; with `--apply` carried out on a clone, verified, exchanged."""

from __future__ import annotations

import argparse

from envdoctor.cli.diagnose import add_plan_wishes, plan_wish
from envdoctor.cli.output import Progress, tell
from envdoctor.cli.parsing import add, add_flag, add_list
from envdoctor.errors import InputError

EXAMPLES = (
    ("what would change in the active environment", ""),
    ("mend another environment; a failure leaves it as it was", "--python .venv/bin/python --apply"),
    ("go back to the state before", "--python .venv/bin/python --undo"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `fix`."""
    add(parser, "--python", "PATH", "the interpreter whose environment is mended (default: the active one)")
    pasted = "show the plan for a paste, a recording or a bundle; - is standard input (repeatable)"
    add_list(parser, "--from", "FILE", pasted, dest="sources")
    add_list(parser, "--gpu", "NAME", "with --from or --lockfile: the card to plan for (repeatable)")
    add_flag(parser, "--apply", "carry the plan out on a clone, verify it, and exchange the two")
    add_flag(parser, "--smoke", "with --apply: run the smoke kernels on the clone, too, before the exchange")
    written = "write the plan into a requirements file, pyproject.toml, environment.yml or Dockerfile"
    add(parser, "--lockfile", "FILE", f"{written}: the diff, and with --apply the file")
    add_flag(parser, "--online", "ask the package index what the plan downloads where it is not on record")
    add_plan_wishes(parser)
    kept = "go back to the last state, or to that of a number; again goes forward"
    add(parser, "--undo", "N", kept, nargs="?", type=int, const=0, default=None)


def run(args: argparse.Namespace) -> int:
    """Show, apply or undo; 0 mended or nothing to do, 1 something remains, 3 nothing was changed."""
    from envdoctor.fixing.fixing import apply_fix, show_fix, undo_fix
    from envdoctor.fixing.report import fix_document

    _check_options(args)
    if args.lockfile:
        return _edit(args)
    line = Progress(args)
    if args.undo is not None:
        fixed = undo_fix(args.python, args.undo or None)
    elif args.apply:
        steps = iter(range(1, 100))
        fixed = apply_fix(
            args.python,
            smoke=args.smoke,
            wish=plan_wish(args),
            step=lambda told: line.step(next(steps), 0, told),
        )
    else:
        fixed = show_fix(
            args.python, sources=args.sources, gpus=args.gpu, wish=plan_wish(args), online=args.online
        )
    line.end()
    tell(args, fixed.to_json, lambda: fix_document(fixed))
    return fixed.exit_code


def _check_options(args: argparse.Namespace) -> None:
    """Raise InputError for options that mean nothing together."""
    if args.undo is not None and (args.apply or args.smoke or args.lockfile or args.sources or args.keep):
        raise InputError("--undo: goes with none of --apply, --smoke, --lockfile, --from and --keep")
    if args.sources and (args.apply or args.smoke or args.python or args.lockfile):
        others = "none of --apply, --smoke, --python and --lockfile"
        raise InputError(f"--from: what a text tells of is not here to be changed; it goes with {others}")
    if args.gpu and not (args.sources or args.lockfile):
        told = "goes with --from and --lockfile; an environment that is here is judged for the cards here"
        raise InputError(f"--gpu: {told}")
    if args.lockfile and (args.python or args.smoke):
        raise InputError(
            "--lockfile: a file is planned for by itself; it goes with neither --python nor --smoke"
        )
    if args.online and (args.apply or args.lockfile or args.undo is not None):
        raise InputError("--online: goes with the plan that is shown, not with --apply, --undo or --lockfile")
    if args.smoke and not args.apply:
        raise InputError("--smoke: goes with --apply")


def _edit(args: argparse.Namespace) -> int:
    from envdoctor.fixing.editing import edit_file
    from envdoctor.fixing.report import edit_document

    told = edit_file(args.lockfile, apply=args.apply, gpus=args.gpu, wish=plan_wish(args))
    tell(args, told.to_json, lambda: edit_document(told))
    return told.exit_code
