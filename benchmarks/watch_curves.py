"""Does the watch foretell? 60 curves that end out of memory and 200 hours of sane ones, made here.

    python benchmarks/watch_curves.py [--tuning] [--hours 200] [--list]

Each kind of death has several sets of parameters; the even ones were looked at when the rules were tuned,
the odd ones were not (`--tuning` runs the even ones alone). Seeds are fixed. Foretold means: an alarm of the
right kind at least 20 steps (in an evaluation: batches) before the end. A false alarm is any in a sane curve.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from envdoctor.watch.alarms import Judge
from envdoctor.watch.moment import Alarm, Card, Header, Moment

AHEAD = 20
RECORDED = Path(__file__).with_name("watch_recorded.json")


@dataclass(frozen=True)
class Plan:
    """A run: what it holds, how that goes up and down, and what goes wrong. MiB, seconds, steps."""

    kind: str
    right: tuple[str, ...] = ()
    seed: int = 0
    step_s: float = 1.0
    of: int | None = 2000
    host: float = 20_000
    host_total: float = 64_000
    noise: float = 30
    wander: float = 0
    card: float = 50_000
    card_total: int = 81_559
    host_leak: float = 0
    card_leak: float = 0
    leak_from: int = 0
    leak_every: int = 1
    teeth: tuple[float, float] = (0, 0)
    card_teeth: tuple[float, float] = (0, 0)
    warm: tuple[float, float] = (0, 1)
    jump: tuple[float, int] = (0, 0)
    eval_every: int = 0
    eval_batches: int = 60
    eval_batch_s: float = 0.5
    eval_excess: float = 0
    eval_leak: float = 0
    save_every: int = 0
    save_s: float = 8
    save_excess: float = 0
    rows: tuple[float, float] = (0, 0)
    rows_expected: float = 0
    neighbour: tuple[int, float, float] = (0, 0, 0)
    neighbour_leaves: int = 0
    spread: float = 0
    """Growth of what is reserved and not allocated, a step."""
    moment_s: float = 1.0
    hours: float = 24.0
    recorded: str = ""


@dataclass
class State:
    """Where a run stands."""

    rng: random.Random
    step: int = 0
    drift: float = 0.0
    longest: float = 0.0
    inner: tuple[str, int, float] | None = None
    """The phase apart from training, its batches so far, and when it began."""
    done: set[tuple[str, int]] = field(default_factory=set)
    allocated: float = 0.0


def moments(plan: Plan) -> Iterator[Moment]:
    """Yield the moments of a run, the last one that of its death or of its end."""
    state = State(random.Random(plan.seed))
    noise = recorded_noise(plan.recorded)
    t = trained = 0.0
    while t < plan.hours * 3600 and (plan.of is None or state.step < plan.of):
        t += plan.moment_s
        if state.inner is None:
            trained += plan.moment_s
            walk(plan, state, int(trained / plan.step_s))
        phase = advance(plan, state, t)
        moment = read(plan, state, t, phase, next(noise) if noise else 0.0)
        yield moment
        if is_dead(plan, moment):
            return


def walk(plan: Plan, state: State, step: int) -> None:
    """Take the steps up to `step`; one that evaluates or saves is the last of them."""
    while state.step < step:
        state.step += 1
        if plan.rows[0]:
            row = min(state.rng.expovariate(1 / plan.rows[0]), plan.rows[1] or 1e9)
            state.longest = max(state.longest, row)
        if state.inner is not None:
            continue
        for name, every in (("evaluation", plan.eval_every), ("saving", plan.save_every)):
            if every and state.step % every == 0 and (name, state.step) not in state.done:
                state.done.add((name, state.step))
                state.inner = (name, 0, -1.0)


def advance(plan: Plan, state: State, t: float) -> str:
    """Move an evaluation or a save on; return the phase."""
    if state.inner is None:
        return "training"
    name, _, began = state.inner
    began = t if began < 0 else began
    if name == "saving":
        state.inner = (name, 0, began) if t - began < plan.save_s else None
        return name
    batch = int((t - began) / plan.eval_batch_s)
    state.inner = (name, batch, began) if batch < plan.eval_batches else None
    return name


def read(plan: Plan, state: State, t: float, phase: str, told: float) -> Moment:
    """Return what would be read now."""
    rng = state.rng
    state.drift = 0.98 * state.drift + rng.gauss(0, plan.wander * 0.2)
    leaked = max(0, state.step - plan.leak_from) // plan.leak_every * plan.leak_every
    grown = plan.warm[0] * (1 - 2.718281828 ** (-t / plan.warm[1])) + (
        plan.jump[0] if state.step > plan.jump[1] else 0
    )
    teeth = plan.teeth[0] * (t / plan.teeth[1] % 1.0) if plan.teeth[0] else 0
    host = plan.host + plan.host_leak * leaked + grown + teeth + state.drift + rng.gauss(0, plan.noise) + told
    if phase == "saving":
        host += plan.save_excess
    card_teeth = plan.card_teeth[0] * (t / plan.card_teeth[1] % 1.0) if plan.card_teeth[0] else 0
    ours = plan.card + plan.card_leak * leaked + state.longest + card_teeth + plan.spread * state.step
    batch = state.inner[1] if state.inner is not None else 0
    part = None
    if phase == "evaluation":
        ours += plan.eval_excess + plan.eval_leak * batch
        part = (batch, plan.eval_batches)
    ours += rng.choice((0, 0, 2, 4))
    others = neighbour(plan, state, t)
    top = min(plan.card_total + 4000, ours + others)
    inside = (int(plan.card * 0.97), int(ours)) if plan.spread else (None, None)
    card = Card(int(top), int(top), plan.card_total, int(ours), 98, 600, 1900)
    room = max(0, plan.host_total - host)
    return Moment(
        t,
        state.step,
        plan.of,
        2.0,
        phase,
        part,
        int(host),
        int(room),
        1.0,
        4,
        500_000,
        32_000,
        0.1,
        *inside,
        cards=(card,),
    )


def neighbour(plan: Plan, state: State, t: float) -> float:
    """Return what another process holds of the card."""
    arrives, first, growth = plan.neighbour
    if not (first or growth) or state.step < arrives:
        return 0.0
    if plan.neighbour_leaves and state.step > plan.neighbour_leaves:
        return 0.0
    return first + growth * (t - arrives * plan.step_s)


def is_dead(plan: Plan, moment: Moment) -> bool:
    """True when what is held is more than there is."""
    return (moment.host or 0) >= plan.host_total or moment.cards[0].top >= plan.card_total * 0.985


def recorded_noise(name: str) -> Iterator[float] | None:
    """Yield the scatter of a recorded run's host memory over and over."""
    if not name:
        return None
    told = json.loads(RECORDED.read_text())[name]

    def over_and_over() -> Iterator[float]:
        while True:
            yield from told

    return over_and_over()


LEAKS = ((41.0, 1.0), (12.0, 0.5), (150.0, 3.0), (4.0, 0.25))
"""Slopes in MiB a step, and seconds a step."""


def dying() -> list[Plan]:
    """Return 60 runs that end out of memory, those to tune by and those held out by turns."""
    plans: list[Plan] = []
    oom, leak = ("OOM-FORETOLD",), ("HOST-LEAK",)
    for slope, step_s in LEAKS:
        for scale, noise in ((1.0, 20.0), (0.83, 60.0), (1.3, 200.0), (1.7, 120.0)):
            base = Plan(
                "host leak", leak, step_s=step_s, of=None, host_leak=slope * scale, noise=noise * step_s**0.5
            )
            plans.append(base)
    for slope, step_s in LEAKS:
        for scale, start in ((1.0, 0), (0.7, 300)):
            plans.append(
                Plan("card leak", oom, step_s=step_s, of=None, card_leak=slope * scale, leak_from=start)
            )
    for scale, card in ((2600, 60_000), (3100, 58_000), (2200, 63_000), (3600, 56_000)):
        plans.append(Plan("long rows late", oom, of=12_000, step_s=0.5, card=card, rows=(scale, 0)))
    for scale, card, expected in ((1500, 68_000, 83_500), (1900, 66_000, 84_800), (1200, 70_000, 82_500),
                                  (2400, 63_000, 90_000)):  # fmt: skip
        plans.append(
            Plan("long rows late, length known", oom, of=30_000, step_s=0.4, card=card, rows=(scale, 0),
                 rows_expected=expected)
        )  # fmt: skip
    for grows, batches in ((420, 120), (640, 70), (250, 160), (330, 200)):
        plans.append(
            Plan(
                "evaluation gathers",
                oom,
                eval_every=100,
                eval_batches=batches,
                eval_leak=grows,
                eval_batch_s=0.8,
            )
        )
    for slope, excess in ((30, 14_000), (55, 9_000), (18, 20_000), (42, 17_000)):
        plans.append(
            Plan("evaluation peaks over a leak", oom, of=None, card_leak=slope, eval_every=60,
                 eval_batches=20, eval_excess=excess)
        )  # fmt: skip
    for slope, excess in ((30, 16_000), (60, 9_000), (22, 24_000), (48, 12_000), (80, 18_000), (36, 20_000)):
        plans.append(
            Plan(
                "saves over a leak",
                leak,
                of=None,
                host_leak=slope,
                save_every=90,
                save_excess=excess,
                noise=80,
            )
        )
    for grows, arrives in ((25, 100), (60, 300), (12, 50), (110, 500), (40, 200), (18, 150)):
        plans.append(Plan("neighbour", ("NEIGHBOUR",), of=6000, neighbour=(arrives, 800, grows)))
    for grows, step_s in ((14, 1.0), (28, 0.6), (9, 0.5), (40, 2.0)):
        plans.append(
            Plan("fragmentation", ("FRAGMENTATION", *oom), of=None, step_s=step_s, spread=grows, card=45_000)
        )
    for slope, teeth in ((20, (900, 40)), (60, (2500, 70)), (35, (1500, 25)), (90, (4000, 110))):
        plans.append(Plan("host leak under teeth", leak, of=None, host_leak=slope, teeth=teeth, noise=60))
    replays = (("trainer", 35.0), ("loader", 22.0), ("trainer", 12.0), ("loader", 70.0))
    for name, slope in replays:
        plans.append(Plan("replayed", leak, of=None, host_leak=slope, noise=0, recorded=name))
    return [replace(plan, seed=100 + number) for number, plan in enumerate(plans)]


def sane(hours: float) -> list[Plan]:
    """Return runs of four hours each in which nothing is wrong."""
    plain = Plan("plateau", of=None, hours=4.0, moment_s=4.0)
    kinds = [
        plain,
        replace(plain, kind="noisy plateau", noise=500, wander=900),
        replace(plain, kind="wandering", wander=400, step_s=0.3),
        replace(plain, kind="teeth", teeth=(3_000, 90)),
        replace(plain, kind="slow teeth", teeth=(9_000, 1500), noise=80),
        replace(plain, kind="high teeth", teeth=(18_000, 600), noise=150),
        replace(plain, kind="teeth on the card", card_teeth=(6_000, 200)),
        replace(plain, kind="warming up", warm=(15_000, 400)),
        replace(plain, kind="warming up slowly", warm=(9_000, 2400), noise=60),
        replace(plain, kind="a jump", jump=(12_000, 3000)),
        replace(plain, kind="evaluations and saves", eval_every=500, eval_excess=9_000, save_every=700,
                save_excess=14_000),
        replace(plain, kind="rows of all lengths", rows=(1_800, 9_000), of=14_400, card=58_000),
        replace(plain, kind="rows up to a bound near the card", rows=(2_500, 16_000), of=14_400, card=62_000),
        replace(plain, kind="a steady neighbour", neighbour=(1, 9_000, 0)),
        replace(plain, kind="a neighbour comes and goes", neighbour=(2000, 12_000, 0), neighbour_leaves=4000),
        replace(plain, kind="drift that ends in time", host_leak=0.6, of=14_400),
        replace(plain, kind="a full host", host=56_000, noise=400, wander=500),
        replace(plain, kind="a full card", card=78_500),
        replace(plain, kind="without steps", step_s=1e9),
        replace(plain, kind="replayed", recorded="trainer", noise=10),
        replace(plain, kind="replayed with workers", recorded="loader", noise=10, step_s=0.4),
    ]  # fmt: skip
    scales = (1.0, 0.75, 1.3, 0.6, 1.5)
    plans = []
    for number in range(int(hours / 4)):
        kind = kinds[number % len(kinds)]
        scale = scales[number // len(kinds) % len(scales)]
        plans.append(
            replace(kind, seed=9000 + number, noise=kind.noise * scale, wander=kind.wander * scale,
                    teeth=(kind.teeth[0] * scale, kind.teeth[1] / scale),
                    warm=(kind.warm[0], kind.warm[1] * scale),
                    step_s=kind.step_s * scale if kind.of is None else kind.step_s)
        )  # fmt: skip
    return plans


@dataclass
class Outcome:
    """What was said of one run."""

    plan: Plan
    alarms: list[tuple[Alarm, Moment]]
    last: Moment
    moments: int

    @property
    def ahead(self) -> float | None:
        """Steps (batches, in an evaluation that gathers) between the first right alarm and the end."""
        right = [at for alarm, at in self.alarms if alarm.kind in self.plan.right]
        if not right:
            return None
        first = right[0]
        if first.step == self.last.step and first.part and self.last.part:
            return self.last.part[0] - first.part[0]
        return (self.last.step or 0) - (first.step or 0)

    @property
    def foretold(self) -> bool:
        """True for a right alarm in time."""
        return self.ahead is not None and self.ahead >= AHEAD


def run(plan: Plan) -> Outcome:
    """Judge a run moment by moment."""
    expected = {"longest": int(plan.rows_expected)} if plan.rows_expected else {}
    judge = Judge(Header(expected=expected))
    alarms, last, count = [], Moment(0.0), 0
    for last in moments(plan):
        count += 1
        alarms += [(alarm, last) for alarm in judge.feed(last)]
    return Outcome(plan, alarms, last, count)


def told(outcome: Outcome) -> str:
    """Return an outcome in a line."""
    first = next((a for a, _ in outcome.alarms if a.kind in outcome.plan.right), None)
    words = first.text if first else "; ".join(a.text for a, _ in outcome.alarms[:2]) or "nothing"
    return f"{outcome.plan.kind:32} ends at step {outcome.last.step:>6}, {outcome.ahead} ahead: {words}"


def error_of(outcome: Outcome) -> float | None:
    """Return how far off the first foretold step was, as a share of the way that was left."""
    for alarm, at in outcome.alarms:
        if alarm.kind in outcome.plan.right and alarm.step is not None and at.step is not None:
            left = (outcome.last.step or 0) - at.step
            return abs(alarm.step - (outcome.last.step or 0)) / left if left else None
    return None


def main() -> int:
    """Judge them all and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tuning", action="store_true", help="only what the rules were tuned by")
    parser.add_argument("--hours", type=float, default=200.0, help="of sane runs")
    parser.add_argument("--list", action="store_true", help="a line for each run")
    args = parser.parse_args()
    started = time.process_time()
    answer: dict[str, Any] = {}
    judged = 0
    for name, start in (("tuning", 0),) if args.tuning else (("tuning", 0), ("held out", 1)):
        outcomes = [run(plan) for plan in dying()[start::2]]
        alive = [o.plan.kind for o in outcomes if not is_dead(o.plan, o.last)]
        if alive:
            raise SystemExit(f"these do not end out of memory: {alive}")
        judged += sum(o.moments for o in outcomes)
        missed = [o for o in outcomes if not o.foretold]
        errors = sorted(e for o in outcomes if (e := error_of(o)) is not None)
        answer[name] = {
            "runs": len(outcomes), "foretold": len(outcomes) - len(missed),
            "missed": dict(Counter(o.plan.kind for o in missed)),
            "median error of the step": round(errors[len(errors) // 2], 3) if errors else None,
        }  # fmt: skip
        for outcome in outcomes if args.list else missed:
            print(f"{name:9}{'' if outcome.foretold else 'MISSED '}{told(outcome)}", file=sys.stderr)
    quiet = [run(plan) for plan in sane(args.hours)]
    judged += sum(o.moments for o in quiet)
    loud = [o for o in quiet if o.alarms]
    for outcome in loud:
        for alarm, _ in outcome.alarms:
            print(
                f"FALSE {outcome.plan.kind} at {alarm.t / 3600:.2f} h: {alarm.kind} {alarm.text}",
                file=sys.stderr,
            )
    answer["sane"] = {
        "hours": sum(o.last.t for o in quiet) / 3600,
        "runs": len(quiet), "runs with a false alarm": len(loud),
        "false alarms": sum(len(o.alarms) for o in quiet),
    }  # fmt: skip
    answer["microseconds a moment"] = round((time.process_time() - started) / judged * 1e6, 1)
    print(json.dumps(answer, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
