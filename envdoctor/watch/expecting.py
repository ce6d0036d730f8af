"""What a run should need, predicted from its command line and the files that it names.

The matrix takes more memory than a watch may hold, so a child loads it: `python -m envdoctor.watch.expecting`
reads a header's terms on standard input and prints what it predicts.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from envdoctor.errors import EnvdoctorError
from envdoctor.processes import run_child
from envdoctor.watch.moment import Header

_PATIENCE_S = 60.0
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def expected_of(header: Header) -> Mapping[str, Any]:
    """Return `longest` (MiB of a card in the largest step) and for `what` run; empty if unknown."""
    told = {"argv": header.argv, "cwd": header.cwd, "cards": header.cards}
    try:
        done = run_child(
            [sys.executable, "-m", "envdoctor.watch.expecting"],
            timeout_s=_PATIENCE_S, stdin=json.dumps(told).encode(), cwd=_ROOT,
        )  # fmt: skip
        answer = json.loads(done.stdout or "{}")
    except (EnvdoctorError, ValueError):
        return {}
    return answer if isinstance(answer, dict) else {}


def main() -> int:
    """Predict what standard input tells of."""
    told = json.load(sys.stdin)
    header = Header(tuple(told["argv"]), cwd=told["cwd"], cards=tuple(told["cards"]))
    sys.stdout.write(json.dumps(predicted(header)))
    return 0


def predicted(header: Header) -> dict[str, Any]:
    """Return what the rules predict of the run; empty where it is not told or not known."""
    from envdoctor.matrix import load_matrix
    from envdoctor.memory import predict
    from envdoctor.rules.base import Skip
    from envdoctor.rules.settings_fit import run_of_trainer, stated_run
    from envdoctor.rules.view import View
    from envdoctor.target.cards import declare_gpus
    from envdoctor.watch.told import told_facts, trainer_named

    matrix = load_matrix()
    try:
        facts = declare_gpus(told_facts(header), header.cards[:1], matrix)
        run, card = stated_run(View(facts, matrix))
        run = run_of_trainer(run, trainer_named(header), matrix)
        prediction = predict(run, card.constants)
    except (Skip, EnvdoctorError):
        return {}
    needed = (prediction.peak_allocated_bytes + card.constants.cuda_context) >> 20
    what = f"{run.method} of {run.shape.name}, batch {run.batch}, length {run.seq}"
    return {"longest": needed, "what": what}


if __name__ == "__main__":
    raise SystemExit(main())
