"""What a run says of itself: steps, losses and phases of the usual trainers; bytes in, state out."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

TAKEN_BYTES = 1 << 16
"""What is looked at of one reading; of more, only the end."""
KEPT_LINES = 400
MAX_LINE = 2000
OWN = "envdoctor: "
"""How a line of the watch itself begins: both may write to one file."""
_TELLING_DIGITS = 4

_ENDS = re.compile(rb"[\r\n]+")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_RANK = re.compile(r"^\[?(?:default|rank)?(\d+)\]?[:|]\s?")
_BAR = re.compile(r"(?:^|:)\s{0,9}\d{1,9}%\|[^|]{0,400}\|\s{0,9}(?P<step>\d{1,15})/(?P<of>\d{1,15}) \[")
_NO_NAME = re.compile(r"[^\w .*/-]")
_STEPS = (
    re.compile(r"['\"]global_step/max_steps['\"]: ['\"](?P<step>\d+)/(?P<of>\d+)"),
    re.compile(r"\biteration\s+(?P<step>\d+)/\s*(?P<of>\d+)"),
    re.compile(
        r"\b(?:global[_ ])?step[s]?\b\s{0,9}[:=#]?\s{0,9}(?P<step>\d+)(?:\s{0,9}(?:/|of)\s{0,9}(?P<of>\d+))?",
        re.I,
    ),
    re.compile(r"^iter\s+(?P<step>\d+):"),
)
_LOSS = re.compile(
    r"(?<!\w)['\"]?(?:lm |train[_ ])?loss['\"]?\s{0,9}[:= ]\s{0,9}['\"]?"
    r"(?P<loss>[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|nan|inf))",
    re.I,
)
_NORM = re.compile(r"['\"]grad_norm['\"]: ['\"]?(?P<norm>[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|nan|inf))", re.I)
_PHASES = (
    ("evaluation", re.compile(r"\* Running (?:Evaluation|Prediction)|^Evaluating\b|^(?:Val|Eval)\b", re.I)),
    ("saving", re.compile(r"^.{0,80}\bSaving (?:model |full )?(?:checkpoint|adapter|model|state)", re.I)),
    ("training", re.compile(r"\* Running training|^(?:Train|Training)\b", re.I)),
    ("loading", re.compile(r"Loading (?:checkpoint|safetensors|weights)|^(?:Map|Tokeniz|Download)", re.I)),
    ("generating", re.compile(r"^Generating (?!.{0,40}split)|Processed prompts", re.I)),
    ("serving", re.compile(r"Avg generation throughput|Application startup complete")),
)  # fmt: skip
_QUICK = re.compile(
    r"\d%\||step|loss|iter|Saving|Running|Loading|Map|Tokeniz|Download|throughput|Eval|Val|Generat|startup|prompts",
    re.I,
)
_TELLING = re.compile(
    r"error|exception|traceback|out of memory|killed|xid|nan\b|cannot|failed|fatal|abort|assert|segmentation"
    r"|timed out|timeout|no space left|not found|undefined symbol|signal \d|watchdog",
    re.I,
)


@dataclass(slots=True)
class LogReader:
    """What the log has told so far."""

    step: int | None = None
    of: int | None = None
    loss: float | None = None
    not_finite: str = ""
    """The line in which a loss or a gradient was no number."""
    same_loss: int = 0
    """Reports in a row of one loss, to the last of four digits or more."""
    no_gradient: int = 0
    """Reports in a row of a gradient of 0."""
    phase: str = ""
    part: tuple[int, int] | None = None
    lines: int = 0
    telling: list[str] = field(default_factory=list)
    tail: list[str] = field(default_factory=list)
    _rest: bytes = b""
    _barred: bool = False
    _loss_told: str = ""
    _loss_step: int | None = None

    def feed(self, data: bytes) -> None:
        """Take in what was said; a line that is not ended yet waits."""
        if len(data) > TAKEN_BYTES:
            data, self._rest = data[-TAKEN_BYTES:], b""
        *whole, self._rest = _ENDS.split(self._rest + data)
        self._rest = self._rest[-MAX_LINE:]
        for line in whole:
            self._take(line[:MAX_LINE].decode("utf-8", "replace"))
        if self._rest and b"%|" in self._rest:  # a bar is drawn over, and its line ended by the next
            self._read(self._clean(self._rest.decode("utf-8", "replace")))

    def close(self) -> None:
        """Take what was never ended."""
        if self._rest:
            self._take(self._rest.decode("utf-8", "replace"))
        self._rest = b""

    def _clean(self, text: str) -> str:
        return _RANK.sub("", _ESCAPES.sub("", text)).strip()

    def _take(self, text: str) -> None:
        line = self._clean(text)
        if not line or line.startswith(OWN):
            return
        self.lines += 1
        is_bar = "%|" in line
        if not is_bar:
            _keep(self.tail, line)
            if _TELLING.search(line):
                _keep(self.telling, line)
        self._read(line)

    def _read(self, line: str) -> None:
        if not _QUICK.search(line):
            return
        if bar := _BAR.search(line):
            self._read_bar(bar)
        else:
            self._read_words(line)

    def _read_bar(self, bar: re.Match[str]) -> None:
        step, of = int(bar["step"]), int(bar["of"])
        what = _NO_NAME.split(bar.string[: bar.start()])[-1].strip()
        phase = next((name for name, pattern in _PHASES if what and pattern.search(what)), "")
        if what and phase != "training":
            self.part, self.phase = (step, of), phase or self.phase or "loading"
        elif self._barred and of != self.of:  # a second bar inside the first one's loop
            self.part, self.phase = (step, of), "evaluation"
        else:
            self._barred = True
            self.step, self.of, self.part, self.phase = step, of, None, "training"

    def _read_words(self, line: str) -> None:
        for name, pattern in _PHASES:
            if pattern.search(line):
                self.phase, self.part = name, None
                break
        if loss := _LOSS.search(line):
            self._number(loss["loss"], line, True)
            self._compare(loss["loss"])
            if self.phase in ("", "loading", "saving"):
                self.phase = "training"
        if norm := _NORM.search(line):
            self._number(norm["norm"], line, False)
            self.no_gradient = self.no_gradient + 1 if float(norm["norm"]) == 0 else 0
        if self._barred:
            return
        for pattern in _STEPS:
            if found := pattern.search(line):
                self.step = int(found["step"])
                whole = found.groupdict().get("of")
                self.of = int(whole) if whole else self.of
                return

    def _compare(self, told: str) -> None:
        """Count steps that report the very same loss; one of few digits may stand still by rounding alone."""
        if told != self._loss_told or _digits(told) < _TELLING_DIGITS:
            self.same_loss = 0
        elif self.step != self._loss_step:  # and not another rank's word on the same step
            self.same_loss += 1
        self._loss_told, self._loss_step = told, self.step

    def _number(self, text: str, line: str, is_loss: bool) -> None:
        value = float(text)
        if is_loss and math.isfinite(value):
            self.loss, self.not_finite = value, ""
        if not math.isfinite(value) and (is_loss or text.lower() == "nan"):
            self.not_finite = line[:300]


def _digits(number: str) -> int:
    """Return how many significant digits a number was written with."""
    return len(number.lower().partition("e")[0].lstrip("+-0.").replace(".", ""))


def _keep(lines: list[str], line: str) -> None:
    lines.append(line)
    if len(lines) > KEPT_LINES:
        del lines[: KEPT_LINES // 4]
