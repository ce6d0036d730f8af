"""The public door: what a program calls, typed. Nothing here prints or ends the process.

    import envdoctor

    diagnosis = envdoctor.diagnose(["report.txt"])
    for finding in diagnosis.findings:
        print(finding.severity.value, finding.summary)

Every function raises InputError for what cannot be meant (the message names the file, line or option, in the
command line's words) and Unavailable where an answer cannot be had; both are an EnvdoctorError.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from envdoctor.errors import InputError
from envdoctor.matrix import Matrix, load_matrix

if TYPE_CHECKING:
    from envdoctor.bundling import Bundle
    from envdoctor.bundling.excerpts import LogExcerpt
    from envdoctor.facts import Facts
    from envdoctor.fixing.fixing import Fixed
    from envdoctor.memory import Prediction
    from envdoctor.memory.stated import StatedRun
    from envdoctor.profile.choosing import Profile
    from envdoctor.smokes import SmokeReport
    from envdoctor.solve.answer import PinSet
    from envdoctor.solve.asking import Wish
    from envdoctor.solve.goal import Goal
    from envdoctor.solve.pinning import WhyNot
    from envdoctor.target.resolve import Declared
    from envdoctor.upgrading.upgrading import Upgrade


def probe(python: str | None = None) -> Facts:
    """Return this machine's facts, of the active environment or of `python`'s.

        driver = envdoctor.probe().driver.version
        print(driver.value if isinstance(driver, envdoctor.Observed) else driver.reason)

    Raises InputError when `python` is no interpreter, Unavailable when a probe's answer is no facts.
    """
    return _read((), python, load_matrix())


def read(sources: Sequence[str]) -> Facts:
    """Return the facts that files tell: a paste, a log, a recording, a bundle; `-` is standard input.

        facts = envdoctor.read(["nvidia-smi.txt", "train.log"])
        diagnosis = envdoctor.diagnose_facts(facts)

    Raises InputError naming the file that is missing, empty or no text.
    """
    if not sources:
        raise InputError("no file to read is named")
    return _read(sources, None, load_matrix())


def parse(text: str, name: str = "") -> Facts:
    """Return the facts that a text tells, such as a log that a program holds; `name` is its file's, if any.

        facts = envdoctor.parse("RuntimeError: CUDA error: no kernel image is available for execution")
        causes = [finding.id for finding in envdoctor.diagnose_facts(facts).findings]

    Raises InputError for a text that is empty or none.
    """
    from envdoctor.pastes.files import parse_text

    return parse_text(text, name, load_matrix().lexicon)


def _read(sources: Sequence[str], python: str | None, matrix: Matrix) -> Facts:
    from envdoctor.diagnosis import read_facts

    return read_facts(sources, python, matrix)


def pin(
    requests: Sequence[str] = (),
    *,
    files: Sequence[str] = (),
    target: str | None = None,
    gpus: Sequence[str] = (),
    driver: str | None = None,
    python_version: str | None = None,
    platform: str | None = None,
    least_change: bool = False,
    exclude_newer: str | None = None,
    allow_source: bool = False,
    index_url: str | None = None,
    offline: bool = False,
    code: Sequence[str] = (),
) -> PinSet:
    """Return versions that work together, or why there are none.

        pins = envdoctor.pin(["torch", "vllm"], gpus=["H100"], driver="580.95.05", python_version="3.12")
        if pins.status == "solved":
            versions = {pin.name: pin.version for pin in pins.pins}

    `requests` are requirements (none: what is installed), `files` requirements files; `target` is a file with
    the facts of another machine; what else is not said is this machine's. `exclude_newer` is a day such as
    2026-01-31. With `least_change` as little as possible of what is installed moves. What the package facts
    do not cover, and what a package that is asked for imports, where its interface is not on record, is read
    at `index_url` (None: as pip is configured) unless `offline`. `code` are files
    and folders whose imports and calls the pins must still have, as far as that can be.
    """
    from envdoctor.solve.asking import Wish
    from envdoctor.solve.pinning import pin as solve_pins
    from envdoctor.target.resolve import Declared

    wish = Wish(requests, files, least_change, exclude_newer, allow_source, index_url, offline)
    goal = _goal(wish, [target] if target else [], Declared(gpus, driver, python_version, platform))
    answer = solve_pins(goal)
    if code or answer.looked_up or (not offline and goal.unrecorded()):
        from envdoctor.upgrading.holding import pinned_for_code

        answer = pinned_for_code(goal, answer, load_matrix(), code)
    if any(pin.built_with == () for pin in answer.pins):
        from envdoctor.upgrading.building import with_builds

        answer = with_builds(goal, answer, load_matrix())
    return answer


def why_not(
    requests: Sequence[str],
    *,
    files: Sequence[str] = (),
    target: str | None = None,
    gpus: Sequence[str] = (),
    driver: str | None = None,
    python_version: str | None = None,
    platform: str | None = None,
    exclude_newer: str | None = None,
    allow_source: bool = False,
    index_url: str | None = None,
    offline: bool = False,
) -> WhyNot:
    """Return what forbids requirements on a target; the arguments are those of `pin`.

        answer = envdoctor.why_not(["flash-attn==2.8.3"], gpus=["T4"])
        if answer.forbidden:
            print([cause.text for cause in answer.causes])

    `forbidden` is None where it hangs on what is not known.
    """
    from envdoctor.solve.asking import Wish
    from envdoctor.solve.pinning import why_not as explain
    from envdoctor.target.resolve import Declared

    wish = Wish(requests, files, False, exclude_newer, allow_source, index_url, offline)
    return explain(_goal(wish, [target] if target else [], Declared(gpus, driver, python_version, platform)))


def upgrade(
    requests: Sequence[str],
    code: Sequence[str],
    *,
    files: Sequence[str] = (),
    target: str | None = None,
    gpus: Sequence[str] = (),
    driver: str | None = None,
    python_version: str | None = None,
    platform: str | None = None,
    exclude_newer: str | None = None,
    allow_source: bool = False,
    index_url: str | None = None,
    offline: bool = False,
) -> Upgrade:
    """Return what code (files, folders) would break with other versions; the rest is as for `pin`.

    What `files` pin is what is there, unless `target` tells that: it moves as little as it can.

    answer = envdoctor.upgrade(["transformers>=5"], ["src"])
    print(answer.judged.patch)
    """
    from envdoctor.solve.asking import Wish
    from envdoctor.solve.pinning import pin as solve_pins
    from envdoctor.target.resolve import Declared
    from envdoctor.upgrading.upgrading import Upgrade, judge_paths, moves_of

    wish = Wish(requests, files, True, exclude_newer, allow_source, index_url, offline, pins_there=True)
    if not wish.given:
        raise InputError("no requirement was given: say what to upgrade, such as 'transformers>=5'")
    goal = _goal(wish, [target] if target else files, Declared(gpus, driver, python_version, platform))
    pins = solve_pins(goal)
    return Upgrade(judge_paths(load_matrix(), moves_of(goal, pins), code), pins)


def _goal(wish: Wish, files: Sequence[str], declared: Declared) -> Goal:
    from envdoctor.solve.asking import goal_of
    from envdoctor.target.resolve import resolve

    matrix = load_matrix()
    needed = files or not declared.machine or not wish.given or wish.least_change
    facts = _read(files, None, matrix) if needed else None
    return goal_of(wish, resolve(declared, facts, matrix), matrix)


def predict(
    model: str,
    run: StatedRun | None = None,
    *,
    gpu: str | None = None,
    stack: str | None = None,
    target: str | None = None,
    python: str | None = None,
    how: str | None = None,
) -> Prediction:
    """Return the peak GPU memory of a run of `model`: a folder, a config.json, a known name or a Hub id.

        run = envdoctor.StatedRun(method="lora", batch=4, seq=4096)
        prediction = envdoctor.predict("Qwen/Qwen2.5-7B", run, gpu="RTX 4090", stack="torch=2.9.1")
        print(prediction.device_bytes / 2**30, prediction.fits(24 * 2**30))

    `stack` are versions (None: those of `python`'s environment); `target` is a file that tells a card and
    versions where they are not given; `how` None is arithmetic, `trace`
    follows the real model class on the CPU, `measure` runs a slice of it on this machine's card.
    """
    from envdoctor.memory.answer import answer
    from envdoctor.memory.stated import StatedRun, ask

    facts = _read([target], None, load_matrix()) if target else None
    asked = ask(model, run or StatedRun(), gpu=gpu, stack=stack, facts=facts, python=python, how=how)
    return answer(asked)


def choose_profile(
    model: str,
    *,
    gpus: Sequence[str] = (),
    count: int | None = None,
    method: str = "auto",
    task: str | None = None,
    framework: str | None = None,
    seq: int | None = None,
    shortest_row: int | None = None,
    global_batch: int | None = None,
    parallel: str | None = None,
    lora_rank: int = 8,
    optim: str | None = None,
    optim_rank: int = 0,
    trained_layers: int = 0,
    virtual_tokens: int = 0,
    beside_gib: float = 0.0,
    stack: str | None = None,
    target: str | None = None,
    python: str | None = None,
    validate: bool = False,
) -> Profile:
    """Return the fastest setting that fits the cards, with the files that say it to a framework.

        profile = envdoctor.choose_profile("Qwen/Qwen2.5-7B", gpus=["RTX 4090"], framework="llamafactory")
        for name, text in profile.files.items():
            Path(name).write_text(text)

    `task` is sft, dpo, reward, grpo or serve (what the framework is for, else sft);
    `count` how many of the card;
    `optim`, `optim_rank`, `trained_layers` and `virtual_tokens` say more of what is trained and stepped;
    samples have `shortest_row` (None: `seq`) to `seq` tokens;
    `beside_gib` what others hold of each card; `target` a file with facts. `validate` runs a few steps on
    this machine's card and steps down if need be.
    """
    from envdoctor.profile.choosing import find_profile, write_profile
    from envdoctor.profile.emit import USUAL, check_framework, usual_task
    from envdoctor.profile.workload import workload_of
    from envdoctor.target.cards import sized_cards
    from envdoctor.target.resolve import Declared, all_cards, resolve

    task = task or usual_task(framework)
    if task not in USUAL:
        raise InputError(f"--task: {task!r} is none of {', '.join(USUAL)}")
    written = framework or USUAL[task]
    check_framework(written, task)
    if validate and (method not in ("auto", "full", "lora", "qlora") or optim):
        raise InputError("--validate: of full, lora and qlora with an optimizer that is chosen")
    matrix = load_matrix()
    needed = not gpus or python or target or validate  # what is tried is what is installed
    facts = _read([target] if target else [], python, matrix) if needed else None
    declared = Declared(gpus, stack=stack)
    work = workload_of(
        model,
        sized_cards(all_cards(declared, facts, matrix), count),
        resolve(declared, facts, matrix).stack,
        matrix,
        framework=framework,
        task=task,
        method=method,
        seq=seq,
        shortest_row=shortest_row,
        global_batch=global_batch,
        beside_bytes=int(beside_gib * (1 << 30)),
        lora_rank=lora_rank,
        optim=optim,
        optim_rank=optim_rank,
        trained_layers=trained_layers,
        virtual_tokens=virtual_tokens,
        parallel=parallel,
    )
    profile = write_profile(find_profile(work, matrix), written, matrix)
    if not validate or profile.found.choice is None:
        return profile
    from envdoctor.profile.validate import run_validation
    from envdoctor.target.stack import active_python

    return run_validation(profile, written, matrix, python or active_python())


def smoke(
    select: Sequence[str] = (),
    *,
    python: str | None = None,
    device: str | None = None,
    timeout_s: float = 60.0,
    build: bool = False,
    bandwidth: bool = False,
    progress: Callable[[int, int, str], None] | None = None,
) -> SmokeReport:
    """Run tiny kernels in child processes, op by op, and return a verdict of each.

        report = envdoctor.smoke(["matmul"], device="cpu")
        wrong = [result.op for result in report.results if result.outcome == "failed"]

    `select` are names, prefixes or globs (none: the quick ones); `device` is cpu, a card's number, or None
    for all cards; `progress` is told how many of how many are done, and the next. `bandwidth` measures speeds
    (alone where nothing is selected), holds them against what such cards reach, and asks DCGM where it is.
    """
    from envdoctor.matrix import load_matrix
    from envdoctor.smokes import run_smokes
    from envdoctor.smokes.catalogue import SPEEDS
    from envdoctor.smokes.expected import judge_report
    from envdoctor.target.stack import active_python

    chosen = (*select, SPEEDS) if bandwidth else tuple(select) or None
    report = run_smokes(
        python or active_python(),
        chosen,
        device,
        timeout_s,
        build=build,
        progress=progress,
        dcgm=bandwidth,
    )
    measured = any(result.speed is not None for result in report.results)
    return judge_report(report, load_matrix()) if measured else report


def fix(
    python: str | None = None,
    *,
    sources: Sequence[str] = (),
    gpus: Sequence[str] = (),
    apply: bool = False,
    smoke: bool = False,
    undo: int | None = None,
    keep: Sequence[str] = (),
    newest: bool = False,
    online: bool = False,
) -> Fixed:
    """Return the one plan for an environment, or with `apply` carry it out on a clone and exchange the two.

        planned = envdoctor.fix(sources=["report.txt"])
        commands = planned.plan.commands if planned.plan else ()

    `sources` are texts to plan for instead, on `gpus` if those are declared; `smoke` runs the kernels on the
    clone; `undo` goes back to a kept state (0: the last). `keep` and `newest` are wishes for the plan;
    `online` asks the package index what it downloads where that is not on record.
    Raises InputError for what cannot be meant, Unavailable where it cannot be done: then nothing was changed.
    """
    from envdoctor.diagnosis import PlanWish
    from envdoctor.fixing.fixing import apply_fix, show_fix, undo_fix

    if (undo is not None) + apply + bool(sources) > 1:
        raise InputError("undo, apply and sources go with none of each other")
    if undo is not None:
        return undo_fix(python, undo or None)
    wish = PlanWish(tuple(keep), newest)
    if apply:
        return apply_fix(python, smoke=smoke, wish=wish)
    return show_fix(python, sources=sources, gpus=gpus, wish=wish, online=online)


def bundle(
    path: str | Path,
    sources: Sequence[str] = (),
    *,
    python: str | None = None,
    gpus: Sequence[str] = (),
    logs: Sequence[str] = (),
    project: str | None = None,
    smoke: bool = False,
    force: bool = False,
) -> Bundle:
    """Write a redacted bundle of this machine, or of what `sources` tell, to `path` and return it.

        envdoctor.bundle("report.zip", logs=["train.log"], project="vllm")

    `python` is the interpreter to examine, `gpus` the cards to judge for; `project` fills that project's
    issue template. Raises InputError when `path` exists without `force`.
    """
    from envdoctor.bundling import write_bundle

    made = make_bundle(sources, python=python, gpus=gpus, logs=logs, project=project, smoke=smoke)
    write_bundle(Path(path), made, force)
    return made


def make_bundle(
    sources: Sequence[str] = (),
    *,
    python: str | None = None,
    gpus: Sequence[str] = (),
    logs: Sequence[str] = (),
    project: str | None = None,
    smoke: bool = False,
) -> Bundle:
    """Return a redacted bundle without writing it; the arguments are those of `bundle`.

    shown = envdoctor.make_bundle(logs=["train.log"]).files
    """
    from envdoctor.bundling import build_bundle, find_tracker
    from envdoctor.bundling.excerpts import read_excerpt
    from envdoctor.diagnosis import diagnose_facts, read_facts, smoked_python, with_verdicts
    from envdoctor.target.cards import declare_gpus

    matrix = load_matrix()
    tracker = find_tracker(matrix, project) if project else None
    excerpts = {log: read_excerpt(Path(log)) for log in logs}
    read = declare_gpus(read_facts(sources, python, matrix), gpus, matrix)
    facts = _with_log_symptoms(read, excerpts, matrix)
    verdicts = None
    if smoke:
        facts, report = with_verdicts(facts, smoked_python(facts, sources, python), matrix)
        verdicts = report.to_json()
    return build_bundle(diagnose_facts(facts, matrix), excerpts, verdicts, tracker)


def _with_log_symptoms(facts: Facts, logs: dict[str, LogExcerpt], matrix: Matrix) -> Facts:
    if not logs:
        return facts
    from envdoctor.pastes import parse_paste

    for path, excerpt in logs.items():
        told = parse_paste(excerpt.text(), Path(path).name, matrix.lexicon)
        facts = replace(facts, symptoms=(*facts.symptoms, *told.symptoms))
    return facts
