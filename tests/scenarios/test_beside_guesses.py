"""What stands beside a guess, and what a program's own sentence tells in a text without an error line."""

from __future__ import annotations

import pytest

from envdoctor.diagnosis import diagnose_facts
from envdoctor.facts import Facts
from envdoctor.findings import Diagnosis, Finding, Severity
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste
from envdoctor.rules.standard_modules import is_standard
from envdoctor.rules.view import View

SITE = "/env/lib/python3.11/site-packages"
HEAD = "Traceback (most recent call last):\n"


def read(text: str) -> Facts:
    return parse_paste(text, "", load_matrix().lexicon, "text.md")


def judged(text: str) -> Diagnosis:
    return diagnose_facts(read(text), load_matrix())


def told(text: str) -> list[Finding]:
    return list(judged(text).findings)


def words(findings: list[Finding]) -> str:
    parts = [
        " ".join((one.summary, one.cause, *(f"{r.text} {' '.join(r.commands)}" for r in one.remedies)))
        for one in findings[:2]
    ]
    return "\n".join(parts)


def test_what_a_message_means_stands_beside_the_release_that_is_suspected() -> None:
    text = (
        f'{HEAD}  File "{SITE}/axolotl/utils/config.py", line 30, in normalize\n'
        "    steps = cfg.batch_size // cfg.micro_batch_size\n"
        "TypeError: unsupported operand type(s) for //: 'NoneType' and 'NoneType'\n"
    )
    assert [one.id for one in told(text)][:2] == ["RELEASE-SUSPECTED", "PYTHON-SAYS"]
    assert "cfg.batch_size or cfg.micro_batch_size is None" in words(told(text))


@pytest.mark.parametrize(
    ("code", "error", "named"),
    [
        (
            "if step < self.limit:",
            "'<' not supported between instances of 'int' and 'NoneType'",
            "limit is None",
        ),
        ("known.update(args.extra)", "'NoneType' object is not iterable", "args.extra is None"),
        ("for one in self.parts:", "'NoneType' object is not iterable", "parts is None"),
    ],
)
def test_the_line_of_code_names_what_is_none(code: str, error: str, named: str) -> None:
    text = f'{HEAD}  File "run.py", line 3, in step\n    {code}\nTypeError: {error}\n'
    assert named in words(told(text))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "INFO: started\nExtraction error: template 'small:1b' not found (status code: 404)\n",
            "template small:1b",
        ),
        (
            "# It stops\n\nI get this error every time I train.\n```\nTuner: the marker '<|x|>' was not found"
            " in any sample of the data\n```\n",
            "marker",
        ),
        (
            "error loading model: tensor 'layers.0.attention.wk.weight' has wrong shape; expected 8 * 8, got"
            " 8 * 1\n",
            "grouped-query",
        ),
        ("ValueError: Could not find model.embed_tokens.* in model\n", "older than the model's architecture"),
    ],
)
def test_a_programs_own_sentence_is_the_error(text: str, said: str) -> None:
    first = told(text)[0]
    assert first.severity is Severity.ERROR
    assert first.id == "SAID-BY-MESSAGE"
    assert said in words([first])


@pytest.mark.parametrize(
    ("frame", "message", "said"),
    [
        (("/usr/lib/python3.10/shutil.py", "_rmtree_safe_fd"), "FileNotFoundError: [Errno 2] No such file or"
         " directory: '/out/step15'", "several processes"),
        (("/usr/lib/python3.10/ast.py", "literal_eval"), "", "key=value"),
        ((f"{SITE}/urllib3/connection.py", "_new_conn"), "socket.timeout: timed out", "HF_ENDPOINT"),
        ((f"{SITE}/sentencepiece/__init__.py", "LoadFromFile"), "RuntimeError: Internal: src/x.cc", "LFS"),
    ],
)  # fmt: skip
def test_what_usually_fails_at_a_place_is_told(frame: tuple[str, str], message: str, said: str) -> None:
    text = f'{HEAD}  File "{frame[0]}", line 7, in {frame[1]}\n    go(x)\n{message}\n'
    assert said in words(told(text))


def test_what_an_installer_was_asked_for_explains_what_it_left() -> None:
    text = (
        '```\npip install "sglang[all]"\n```\nERROR: pip\'s dependency resolver does not currently take into'
        " account all the packages that are installed.\nllava 1.2.2 requires torch==2.1.2, but you have torch"
        " 2.4.0 which is incompatible.\n"
    )
    assert "asked for sglang[all], whose own requirements brought torch 2.4.0" in words(told(text))
    missing = "`pip3 install frobnet` went well.\nModuleNotFoundError: No module named 'frobnet'\n"
    assert "python -m pip install frobnet" in words(told(missing))


def test_an_argument_that_no_release_takes_is_told_so() -> None:
    text = "TypeError: LoraConfig.__init__() got an unexpected keyword argument 'use_original_init'\n"
    assert "not an argument" in words(told(text))
    loading = "TypeError: SFTTrainer.__init__() got an unexpected keyword argument 'torch_dtype'\n"
    assert "argument of from_pretrained" in words(told(f"trl 0.24.0\n{loading}"))


def test_the_weights_of_the_model_stand_beside_the_card() -> None:
    text = "# CUDA out of memory when I fine-tune the 70B model\n\nIt is an RTX 4090.\n"
    assert "70B take about 130 GiB in 16 bit" in words(told(text))


def test_ideographs_set_no_blanks_beside_a_card_or_a_word() -> None:
    found = judged("# 在V100上训练总是出现loss为0，grad_norm为nan的情况\n")
    assert found.findings[0].id == "LOSS-NAN"
    assert found.exit_code == 1


@pytest.mark.parametrize(
    ("python", "module", "standard"),
    [
        (None, "distutils.version", True),
        ("3.11.4", "distutils", True),
        ("3.12.1", "distutils", False),
        ("3.10", "tomllib", False),
        ("3.13", "tomllib", True),
        ("3.99", "json.decoder", True),
        (None, "torch", False),
    ],
)
def test_which_modules_are_pythons_own_is_of_the_told_python(
    python: str | None, module: str, standard: bool
) -> None:
    text = f"Python {python}\n" if python else "torch==2.4.0\n"
    assert is_standard(View(read(text), load_matrix()), module) is standard


def test_what_is_logged_as_a_warning_did_not_stop_the_program() -> None:
    line = (
        "(EngineCore pid=7) WARNING 06-25 16:32:09 [import_utils.py:408] ImportError: libnvrtc.so.13: cannot"
    )
    found = judged(f"{line} open shared object file: No such file or directory\n")
    assert found.exit_code == 0
    assert {one.severity for one in found.findings} == {Severity.WARNING}


def test_a_form_is_told_whatever_its_words() -> None:
    text = "### Reproduction\n\nI start it with both cards of this very machine.\n\n### Expected behavior\n"
    assert [one.id for one in told(text)] == ["UNEXPLAINED-ERROR"]


@pytest.mark.parametrize(
    ("line", "first"),
    [
        ("NCCL WARN Call to shm_open failed : Permission denied", "SHM-DENIED"),
        ("blobs only has 4489.36 MB free disk space. warnings.warn(", "HUB-DISK-SHORT"),
        ("Cannot connect to host raw.githubusercontent.com:443 ssl:default [timeout]", "HOST-NOT-REACHED"),
        ("Fatal Python error: Floating point exception", "SIGFPE"),
        ("i have not adapter_config.json", "ADAPTER-CONFIG-ABSENT"),
        ('msg="CPU does not have minimum vector extensions, GPU inference disabled"', "CPU-NO-AVX"),
    ],
)
def test_a_line_is_answered_by_its_row(line: str, first: str) -> None:
    assert told(f"{line}\n")[0].id == first


def test_a_name_that_is_imported_is_no_refusal_of_the_hub() -> None:
    text = (
        "from huggingface_hub.utils._errors import RepositoryNotFoundError\n"
        "ModuleNotFoundError: No module named 'huggingface_hub.utils._errors'\n"
    )
    assert "HUB-ACCESS" not in [one.id for one in told(text)]
