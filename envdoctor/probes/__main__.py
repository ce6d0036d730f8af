"""`python probe.pyz [--python PATH]`: print this machine's facts as JSON and nothing else."""

from __future__ import annotations

import argparse
import json
import os
import sys

from .interpreter import NoInterpreter
from .reading import read_machine


def main() -> int:
    """Print the facts; 2 when the named interpreter is unusable, 3 when a part could not be read."""
    parser = argparse.ArgumentParser(prog="probe", description="Print this machine's facts as JSON.")
    parser.add_argument("--python", metavar="PATH", help="the interpreter or environment to examine")
    try:
        facts = read_machine(parser.parse_args().python)
    except NoInterpreter as error:
        sys.stderr.write("probe: --python: %s\n" % error)
        return 2
    sys.stdout.write(json.dumps(facts, indent=1) + "\n")
    sys.stdout.flush()
    for part, why in facts.get("unread", {}).items():
        sys.stderr.write("probe: not known: %s: %s\n" % (part, why))
    return 3 if "unread" in facts else 0


if __name__ == "__main__":
    # A probe that hangs in the kernel must not keep the process alive.
    os._exit(main())
