"""Conditions of sources, ranges and messages, drawn: what each is said to mean, not only what one test asks.

`drawn_terms.tsv` is the record: each *guard* with its words and ways out, in turn for an empty machine
and for two others; of each *range*, version or number what it is held against, with `x` met, `.` not met,
`?` unknown; and what each *message* asks for. After one of these readers changed, `python
tests/rules/test_drawn_terms.py` writes it anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from random import Random

import pytest
from declared import facts_of

from envdoctor.matrix import load_matrix
from envdoctor.rules.guards import said_of
from envdoctor.rules.messages import asked_by, is_lacking
from envdoctor.rules.ranges import (
    number_satisfies,
    parse_version,
    range_satisfies,
    specifier_in,
    text_matches,
    version_satisfies,
)
from envdoctor.rules.view import View

RECORD = Path(__file__).with_name("drawn_terms.tsv")


def parts(text: str) -> list[str]:
    return text.split("¦")


SUBJECTS = parts(
    "self.lora_rank¦args.learning_rate¦cfg['key']¦config.get('beta', 1)¦getattr(args, 'packing', None)"
    "¦x¦data.get('trl', {}).get('beta')¦torch.__version__¦version('flash-attn')¦_transformers_version"
    "¦HAS_TRITON¦is_flash_attn_2_available()¦is_peft_available('0.11')¦len(batch)¦q.shape[0]"
    "¦self._private¦head_dim % 8¦torch.cuda.get_device_capability()¦capability.major¦compute_cap"
    "¦os.environ¦x.is_contiguous()¦torch.cuda.is_available()¦config.model.hidden_size¦kwargs['a_b']"
    "¦find_spec('peft')¦getattr(other, name)"
)
TESTS = parts(
    "{}¦not {}¦{} is None¦{} is not None¦{} == 4¦{} != 'eager'¦{} < 8¦{} >= (8, 0)¦{} <= '4.40.1'"
    "¦{} > 90¦{} in ('a', 'b')¦{} not in [n, m]¦'HF_HOME' in {}¦'k' not in {}"
    "¦isinstance({}, (int, mod.Str))¦{} == other¦0 < {} < 3¦{} % n != 0¦bool({})¦hasattr({}, 'x')"
    "¦os.path.exists({})¦not {}.has_device_capability(80)¦{} is raised¦({} := f())¦{} ==¦{} != 0"
)
MACHINES = (
    facts_of(),
    facts_of("sm_75", packages={"torch": "2.6.0", "flash-attn": "2.7.4", "peft": "0.10.0"}),
    facts_of("sm_90", packages={"transformers": "4.51.3", "triton": "3.2.0"}, settings={"lora_rank": "8"}),
)
MESSAGES = parts("head_dim must be a multiple of 8¦learning_rate and beta are wrong¦")
PLACES = parts("¦TrainingArguments.__post_init__¦forward")
VERSIONS = parts(
    "2¦2.6.0¦2.6.0+cu124¦2.6.0rc1¦2.6.0.dev20250101¦2.6.0.post1¦2.6.1a0+git12¦0.10¦1!2.0¦4.40.1¦x"
)
RANGES = parts(
    ">=2.6¦<2.6¦==2.6.0¦==2.6.*¦!=2.6.0¦~=2.5¦>2.6.0,<3¦<=2.6¦>=2.6.0rc1¦>=2,!=2.6.0¦==2.6.0+cu124"
    "¦>=4.0,<=4.40.1¦<0¦~=2.6.0¦>2.6¦===2.6.0¦"
)
NUMBERS = parts("0.85¦0.9¦1¦4096¦-1¦1e-4¦x¦")
CONDITIONS = parts(">=0.9¦<0.9¦==1¦>1,<5000¦!=4096¦>=4096¦<=0.1¦a|b|0.9¦!1|x¦4*¦!4*¦true")
SAID = parts(
    "ValueError: Please set use_cache=False. It is slow."
    "¦RuntimeError: bad; you must pass trust_remote_code=True"
    "¦a.b.C: If you train, use bf16. Otherwise, lower the batch. Try it. Consider fp8. Or raise it.¦set"
    '¦NCCL_P2P_DISABLE must be set to "1" or HF_HUB_OFFLINE has to be True'
    "¦X: fp8 is not yet supported; upgrade it¦Value error, either use x or y [type=value_error]"
    "¦E: this only supports Linux. make sure that it is¦you can find"
    "¦needs transformers>=4.40,<5 and torch ==2.1.*¦requires >=2.x or (~=1.4.2)¦got 2.6¦<3,>=2.1.post1"
)


def guards() -> Iterator[str]:
    dice = Random(7)
    single = [test.format(subject) for test, subject in product(TESTS, SUBJECTS)]
    joined = (
        f" {dice.choice(('and', 'or'))} ".join(dice.sample(single, dice.choice((2, 3)))) for _ in range(200)
    )
    for number, guard in enumerate((*single, *joined)):
        view = View(MACHINES[number % 3], load_matrix())
        said = said_of(view, guard, MESSAGES[number % len(MESSAGES)], PLACES[number // 2 % len(PLACES)])
        words = "; ".join(one.words for one in said)
        ways = " / ".join(f"{way.text} {' '.join(way.commands)}".strip() for one in said for way in one.ways)
        seen = " ".join(f"{e.fact}={e.value}" for one in said for e in one.evidence)
        yield f"{guard}\t{words}\t{ways}\t{seen}"


def mark(met: bool | None) -> str:
    return "?" if met is None else ".x"[met]


def ranges() -> Iterator[str]:
    for text in VERSIONS:
        version = parse_version(text)
        marks = (version_satisfies(version, one) if version else None for one in RANGES)
        yield f"version {text}\t{''.join(map(mark, marks))}"
    for known in RANGES:
        yield f"range {known}\t{''.join(mark(range_satisfies(known, one)) for one in RANGES)}"
    for value in NUMBERS:
        marks = "".join(mark(number_satisfies(value, one)) for one in CONDITIONS[:7])
        yield f"number {value}\t{marks} {''.join(mark(text_matches(value, one)) for one in CONDITIONS)}"


def messages() -> Iterator[str]:
    for text in SAID:
        asked = " / ".join(f"{way.text} {' '.join(way.commands)}".strip() for way in asked_by(text))
        yield f"{text}\t{asked}\t{specifier_in(text)}\t{is_lacking(text)}"


KINDS: dict[str, Callable[[], Iterator[str]]] = {"guard": guards, "range": ranges, "message": messages}


def lines(kind: str) -> list[str]:
    return [f"{kind}\t{line}" for line in KINDS[kind]()]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_drawn_means_what_it_meant(kind: str) -> None:
    recorded = RECORD.read_text(encoding="utf-8").splitlines()
    assert lines(kind) == [line for line in recorded if line.partition("\t")[0] == kind]


if __name__ == "__main__":
    RECORD.write_text("".join(f"{line}\n" for kind in KINDS for line in lines(kind)), encoding="utf-8")
