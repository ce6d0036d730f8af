"""What all lanes of one run share: how workers start, and what the first of them learnt of the cards."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence

from envdoctor.errors import InputError
from envdoctor.smokes.channel import Worker
from envdoctor.smokes.verdicts import Outcome


class Session:
    """The settings of one run, and the cards once known; `unusable` is why no worker can start."""

    def __init__(
        self,
        python: str,
        env: Mapping[str, str],
        *,
        device: str | None,
        timeout_s: float,
        start_timeout_s: float,
        build: bool,
        gpu_expected: bool,
    ) -> None:
        self.timeout_s = timeout_s
        self.start_timeout_s = start_timeout_s
        self.cards: tuple[int, ...] = ()
        self.device_name: str | None = "cpu" if device == "cpu" else None
        self.unusable: tuple[Outcome, str, str | None] | None = None
        self._idle: deque[Worker] = deque()
        self._python = python
        self._env = env
        self._device = device
        self._build = build
        self._gpu_expected = gpu_expected

    def prestart(self, count: int) -> None:
        """Start workers before it is known what they will do: importing torch takes them a while."""
        self._idle.extend(self._start() for _ in range(count))

    def take_worker(self) -> Worker:
        """Return a worker that has served nothing yet; raises Unavailable when none can be started."""
        return self._idle.popleft() if self._idle else self._start()

    def close(self) -> None:
        """End the workers that nobody took."""
        while self._idle:
            self._idle.pop().close()

    def _start(self) -> Worker:
        return Worker(self._python, self._env, self._device, self._build, self.start_timeout_s)

    def learn_devices(self, names: Sequence[str], trouble: str | None) -> tuple[Outcome, str] | None:
        """Take note of the cards that torch sees; return a verdict for all when it sees none.

        Raises InputError when the chosen card is not among them.
        """
        if self._device == "cpu":
            return None
        if not names:
            why = trouble or "torch sees none"
            if self._gpu_expected:
                return "failed", f"this machine has an NVIDIA GPU that torch does not reach: {why}"
            return "skipped", f"no GPU: {why}"
        self.cards = tuple(range(len(names))) if self._device is None else (int(self._device),)
        if self.cards[-1] >= len(names):
            raise InputError(f"--device {self._device}: {len(names)} visible to torch, counted from 0")
        self.device_name = count_names([names[card] for card in self.cards])
        return None


def count_names(names: Sequence[str]) -> str:
    """Return the cards in words: `NVIDIA H200`, `2 x NVIDIA H200`."""
    counted = Counter(names)
    return ", ".join(name if count == 1 else f"{count} x {name}" for name, count in counted.items())
