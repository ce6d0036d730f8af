from __future__ import annotations

import base64
import importlib
import pkgutil
import re
from urllib.parse import quote

import pytest
import re2
from benign import benign
from hypothesis import given, settings
from hypothesis import strategies as st
from planted import identities, planted

from envdoctor import bundling
from envdoctor.bundling import Redactor, labels
from envdoctor.bundling.known_values import KnownValues
from envdoctor.bundling.secret_formats import load_formats
from envdoctor.bundling.secret_values import is_drawn, looks_like_password
from envdoctor.bundling.unwrapping import strip_escapes

CORPUS = planted()
IDENTITIES = identities()


def redacted(text: str) -> str:
    redactor = Redactor()
    redactor.learn(text)
    return redactor.redact(text)


def survivors(secret: str, text: str) -> list[str]:
    """Any eight characters in a row of the secret that can still be read."""
    size = 8 if len(secret) > 12 else len(secret)
    return [secret[i : i + size] for i in range(len(secret) - size + 1) if secret[i : i + size] in text]


def test_the_corpus_is_large_and_varied():
    assert len(CORPUS) >= 400
    assert len({p.kind for p in CORPUS}) >= 40
    assert {"env", "log", "json", "yaml", "url-query", "traceback", "wrapped", "wrapped-box", "ansi"} <= {
        p.context for p in CORPUS
    }


def test_no_planted_secret_survives():
    leaks = [p for p in CORPUS if survivors(p.secret, redacted(p.text))]
    assert leaks == []


def test_no_planted_secret_survives_in_one_text():
    some = CORPUS[::4]
    shared = redacted("\n".join(p.text for p in some))
    assert [p for p in some if survivors(p.secret, shared)] == []


def test_no_user_host_address_or_serial_survives():
    leaks = [p for p in IDENTITIES if p.secret in redacted(p.text)]
    assert leaks == []


def test_benign_lines_stay():
    changed = [line for line in benign() if redacted(line) != line]
    assert len(benign()) == 2000
    assert len(changed) <= 2, changed


def test_benign_lines_stay_in_one_text():
    text = "\n".join(benign())
    pairs = zip(text.split("\n"), redacted(text).split("\n"), strict=True)
    assert [a for a, b in pairs if a != b] == []


@pytest.mark.parametrize(
    "kept",
    [
        "13.0.88",
        "torch 2.13.0.1",
        "2.13.0.1",
        "nvidia-curand-cu12==10.3.5.147",
        "NVIDIA GeForce RTX 5090",
        "commit 0123456789abcdef0123456789abcdef01234567",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "127.0.0.1:29500",
        "git@github.com:pytorch/pytorch.git",
        "00000000:3B:00.0",
        "password: <secret-1>",
        "api_key=os.environ['OPENAI_API_KEY']",
        "max_tokens=512 pad_token=<pad> eos_token_id=2",
    ],
)
def test_versions_hashes_and_names_survive(kept):
    assert redacted(kept) == kept


def test_a_bare_hash_is_a_secret_only_beside_a_telling_key():
    digest = "0123456789abcdef0123456789abcdef01234567"
    assert redacted(f"HEAD is now at {digest}") == f"HEAD is now at {digest}"
    assert redacted(f"WANDB_API_KEY={digest}") == "WANDB_API_KEY=<secret-1>"
    known = Redactor(KnownValues(secrets=(digest,)))
    assert known.redact(f"key was {digest}") == "key was <secret-1>"


def test_the_same_value_has_the_same_placeholder():
    redactor = Redactor()
    first, second = "/home/alicia/x", "/home/roberto/y and alicia and roberto, and /home/alicia"
    redactor.learn(first)
    redactor.learn(second)
    assert redactor.redact(first) == "/home/<user-1>/x"
    assert redactor.redact(second) == "/home/<user-2>/y and <user-1> and <user-2>, and /home/<user-1>"
    assert redactor.summary() == {"user": 5}


def test_the_summary_tells_kinds_and_counts_and_no_value():
    redactor = Redactor()
    redactor.redact("hf_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3h" + " mail me@lab.example.org")
    assert redactor.summary() == {"email": 1, "huggingface-token": 1}


@pytest.mark.parametrize("secret", ["p@ss/word+1&x", "hunter2hunter2", 'qu"ote\\d=7', "zürich-Straße-9"])
def test_known_values_are_found_however_they_are_encoded(secret):
    redactor = Redactor(KnownValues(secrets=(secret,)))
    raw = secret.encode()
    forms = [
        secret,
        quote(secret, safe=""),
        base64.b64encode(raw).decode(),
        base64.urlsafe_b64encode(raw).decode(),
        base64.b64encode(b"user:" + raw).decode(),
        base64.b64encode(b"ab" + raw + b"tail").decode(),
        raw.hex(),
    ]
    for form in forms:
        shown = redactor.redact(f"seen {form} here")
        assert not survivors(form, shown), form
        assert "<secret-1>" in shown


def test_a_known_value_is_found_across_a_line_break():
    redactor = Redactor(KnownValues(secrets=("correcthorsebatterystaple",)))
    assert redactor.redact("it is correcthorseb\n   atterystaple, really") == "it is <secret-1>\n   , really"


def test_wrapping_takes_nothing_from_the_next_line():
    token = "hf_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3h"
    text = f"token {token}\nLoading model\n{token[:20]}\n{token[20:]}\nab12cd34 next"
    assert (
        redacted(text) == "token <huggingface-token-1>\nLoading model\n<huggingface-token-1>\n\nab12cd34 next"
    )


def test_variables_after_a_secret_variable_stay():
    assert (
        redacted("HF_TOKEN=abc123def456\nRANK=0\nCUDA_HOME=/usr")
        == "HF_TOKEN=<secret-1>\nRANK=0\nCUDA_HOME=/usr"
    )


def test_colour_codes_are_taken_out():
    assert redacted("\x1b[31mred\x1b[0m \\u001b[32mgreen") == "red green"


def test_json_fields_with_telling_names_are_replaced_whole():
    redactor = Redactor()
    value = {
        "hostname": {"value": "node7", "source": "socket"},
        "version": "10.3.5.147",
        "HF_TOKEN": "abc123xyz",
        "n": 3,
    }
    assert redactor.redact_json(value) == {
        "hostname": {"value": "<host-1>", "source": "socket"},
        "version": "10.3.5.147",
        "HF_TOKEN": "<secret-1>",
        "n": 3,
    }


def test_private_indexes_go_and_public_ones_stay():
    assert redacted("--index-url https://pypi.lab-corp.example/simple") == "--index-url <private-index-1>"
    public = "--index-url https://download.pytorch.org/whl/cu126"
    assert redacted(public) == public


@given(st.text(max_size=400))
@settings(max_examples=80, deadline=None)
def test_any_text_can_be_redacted_and_twice_is_once(text):
    once = redacted(text)
    assert redacted(once) == once


@given(st.lists(st.sampled_from([p.text for p in CORPUS[::7]] + benign()[:200]), max_size=6).map("\n".join))
@settings(max_examples=25, deadline=None)
def test_redacting_twice_changes_nothing_more(text):
    once = redacted(text)
    assert redacted(once) == once


def test_a_name_is_not_judged_together_with_the_next_line():
    text = "done\nunexpected_key=model.layers.31.self_attn.q_proj.weight\nTraceback (most recent call last):"
    assert redacted(text) == text


def test_a_placeholder_that_is_there_already_keeps_its_number():
    assert (
        redacted("password: <secret-1>\npassword: hunter2a") == "password: <secret-1>\npassword: <secret-2>"
    )


def patterns() -> list[tuple[str, re.Pattern[str]]]:
    names = [module.name for module in pkgutil.iter_modules(bundling.__path__)]
    modules = [importlib.import_module(f"envdoctor.bundling.{name}") for name in names]
    named = [
        (n, p)
        for m in modules
        for n, p in vars(m).items()
        if isinstance(p, re.Pattern) and isinstance(p.pattern, str)
    ]
    vocabulary = labels.read_vocabulary()
    values = [(f"value:{name}", p) for name, patterns in vocabulary.values.items() for p in patterns]
    formats = [(f"{f.kind}:{f.pattern[:20]}", re.compile(f.pattern, re.ASCII)) for f in load_formats()]
    return [*named, ("label", vocabulary.label), ("gap", vocabulary.gap), *values, *formats]


def test_every_pattern_is_in_re2s_subset_and_finds_the_same():
    texts = (*(strip_escapes(p.text) for p in CORPUS[::199]), *benign()[::633])
    for name, pattern in patterns():
        linear = re2.compile(("(?m)" if pattern.flags & re.MULTILINE else "") + pattern.pattern)
        for text in filter(str.isascii, texts):
            found = [m.span() for m in linear.finditer(text)]
            assert found == [m.span() for m in pattern.finditer(text)], (name, text)


def test_planted_values_are_found_by_the_right_kind():
    shown = {p.kind: redacted(p.text) for p in CORPUS if p.context == "bare"}
    assert "<huggingface-token-1>" in shown["huggingface"]
    assert "<anthropic-key-1>" in shown["anthropic"]
    assert "<jwt-1>" in shown["jwt"]


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        ("commit 8f3kD9sLq2Xz7VbN4mTp1RwYc6Hg0JuE", "commit 8f3kD9sLq2Xz7VbN4mTp1RwYc6Hg0JuE"),
        ("vomit 8f3kD9sLq2Xz7VbN4mTp1RwYc6Hg0JuE", "vomit <secret-1>"),
        ("/scratch/ann/run.py", "/scratch/<user-1>/run.py"),
        ("/scratch/bo/run.py", "/scratch/bo/run.py"),
        ("--hosts gpu-a7,gpu-b9", "--hosts <host-1>,<host-2>"),
        (
            "the api key must have 40 characters, yours was 8f3kD9sLq2Xz7VbN4mTp1RwYc6Hg0JuE",
            "the api key must have 40 characters, yours was <secret-1>",
        ),
        ("pass\\u0077ord=hunter-Two-99x", "pass\\u0077ord=<secret-1>"),
        ('password: "correct horse Battery7"', 'password: "<secret-1>"'),
        (
            '{"a": "{\\"password\\": \\"correct horse Battery7\\"}"}',
            '{"a": "{\\"password\\": \\"<secret-1>\\"}"}',
        ),
        ("&lt;password&gt;hunter-Two-99x&lt;/password&gt;", "&lt;password&gt;<secret-1>&lt;/password&gt;"),
        ("--exclude torch.compile(model)", "--exclude torch.compile(model)"),
        ("--exclude gpu-node-07,node-a7", "--exclude <host-1>,<host-2>"),
        ("token took 1234567.5GiB", "token took 1234567.5GiB"),
        ('if "Kq7zT2xW9p" == token:', 'if "<secret-1>" == token:'),
        ('if "Kq7zT2xW9p" == cohere:', 'if "Kq7zT2xW9p" == cohere:'),
        ("see hf_1234567890123456", "see hf_1234567890123456"),
        ("see hf_12345678901234ab", "see <huggingface-token-1>"),
        (
            "a line of a log that is long enough\n" * 20 + "name   api_key\nprod   q8f3kD9sLq2Xz7VbN4mT\n",
            "a line of a log that is long enough\n" * 20 + "name   api_key\nprod   <secret-1>\n",
        ),
    ],
)
def test_what_stands_before_a_value_decides(text: str, shared: str) -> None:
    assert Redactor().redact(text) == shared


@pytest.mark.parametrize(
    "measured", ["123456.789ms", "1234567.5GiB", "2026-11-20T10:11:12", "v1.2.3+cu126", "0x7f3a9b2c1d0e"]
)
def test_a_measure_is_not_drawn(measured: str) -> None:
    assert not is_drawn(measured)
    assert is_drawn("kQzfRtYbWmLpHxVn")


@pytest.mark.parametrize("chosen", ["Summer#2026now", "xkqzvbnmwrt", "ABCD-1234-EFGH"])
def test_what_people_choose_looks_like_a_password(chosen: str) -> None:
    assert looks_like_password(chosen)
    assert not any(map(looks_like_password, ("configuration", "correcthorse", "12345678", "Hunter2")))


def test_a_name_behind_an_escape_is_a_name_and_one_within_a_word_is_none() -> None:
    redactor = Redactor(KnownValues(users=("katharina",)))
    assert redactor.redact(r"it said\nkatharina left") == r"it said\n<user-1> left"
    assert redactor.redact("xkatharina and katharinas") == "xkatharina and katharinas"


@pytest.mark.parametrize(
    "line", ["password = 'it is Hunter2 now'", 'password: "my dog Rex 99"', "PASSWORD='a b c d'"]
)
def test_a_quoted_secret_of_several_words_goes_whole(line: str) -> None:
    redacted = Redactor().redact(line)
    assert not any(word in redacted for word in ("Hunter2", "Rex", "b c"))
