"""Small judgements at both sides of what decides them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from declared import facts_of
from packaging.version import Version

from envdoctor.diagnosis import diagnose_facts
from envdoctor.facts import (
    CudaVersion,
    Driver,
    DriverVersion,
    Facts,
    Frame,
    Gpu,
    NativeLibrary,
    Observed,
    Symptom,
    Toolkit,
)
from envdoctor.matrix import load_matrix
from envdoctor.matrix.interface_records import load_record
from envdoctor.pastes import parse_paste
from envdoctor.rules.architectures import _known_since
from envdoctor.rules.asked import Lack, Wanted
from envdoctor.rules.asking_side import releases_without
from envdoctor.rules.base import Skip
from envdoctor.rules.conditions import UNKNOWN, Answer, _judge_setting
from envdoctor.rules.driver import check_driver_for_torch
from envdoctor.rules.generations import _owner
from envdoctor.rules.libcuda import CONTAINER_IMAGE, check_container_cuda
from envdoctor.rules.libraries import _is_older
from envdoctor.rules.listing import explained_checks
from envdoctor.rules.raisers import _module_of
from envdoctor.rules.ranges import _below, number_satisfies, range_satisfies
from envdoctor.rules.requirements import _stated
from envdoctor.rules.sayings import _capability, _given_value, _last_number, _specifier
from envdoctor.rules.settings_fit import _loaded, card_of
from envdoctor.rules.variables import _arch_finding
from envdoctor.rules.view import View
from envdoctor.rules.visibility import parse_visible

CARDS = [Gpu(n, "nvidia-smi", uuid=f"GPU-{letter * 4}") for n, letter in enumerate("abc")]


def view(**told: object) -> View:
    return View(facts_of(**told), load_matrix())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "seen", "why"),
    [
        ("0", [0], None),
        ("2,0", [2, 0], None),
        ("0,1,2", [0, 1, 2], None),
        ("3", [], "no GPU here has the number 3 (here are 0 to 2)"),
        ("0,3,1", [0], "no GPU here has the number 3 (here are 0 to 2)"),
        ("1,1", [], "it names 1 twice"),
        ("", [], "it is empty"),
        ("  ", [], "it is empty"),
        ("GPU-aaaa", [0], None),
        ("GPU-c,GPU-a", [2, 0], None),
        ("GPU-", [], "no GPU here is GPU-"),
        ("GPU-dddd", [], "no GPU here is GPU-dddd"),
        ("GPU-aaaa,1", [0], "1 is no GPU-… id"),
    ],
)
def test_which_gpus_a_program_sees(value: str, seen: list[int], why: str | None) -> None:
    found = parse_visible(value, CARDS)
    assert ([gpu.index for gpu in found.gpus], found.why) == (seen, why)


def test_of_one_gpu_the_first_number_is_said_to_be_all() -> None:
    assert parse_visible("1", CARDS[:1]).why == "no GPU here has the number 1 (here is 0 alone)"


@pytest.mark.parametrize(
    ("version", "built", "older"),
    [
        *[("9.1.0", "9.10.2", True), ("9.10.2", "9.1.0", False), ("9.1.0", "9.1.9", False)],
        *[("8.9.7", "9.1.0", False), ("9.1.0", "8.9.7", False), ("", "9.1.0", False)],
    ],
)
def test_a_library_is_older_within_its_major_by_its_minor(version: str, built: str, older: bool) -> None:
    assert _is_older(NativeLibrary("cudnn", "", "wheel", version), Version(built)) is older


@pytest.mark.parametrize(
    ("spans", "specifiers"),
    [
        ([], []),
        ([(0, 2)], [">=4"]),
        ([(0, 4)], []),
        ([(1, 4)], ["<2"]),
        ([(3, 4)], ["<4"]),
        ([(1, 1), (3, 4)], ["<2"]),
        ([(2, 3), (0, 1)], [">=5"]),
        ([(3, 3), (1, 2)], [">=5", "<2"]),
    ],
)
def test_releases_that_ask_no_more_or_not_yet(spans: list[tuple[int, int]], specifiers: list[str]) -> None:
    assert list(releases_without(("1", "2", "3", "4", "5"), spans)) == specifiers


@pytest.mark.parametrize(
    ("path", "module"),
    [
        ("site-packages/torch/nn/functional.py", "torch.nn.functional"),
        ("torch/site-packages/torch/nn/__init__.py", "torch.nn"),
        ("torch", "torch"),
        ("a/b/c.py", ""),
    ],
)
def test_what_a_frame_of_a_package_is_imported_as(path: str, module: str) -> None:
    record = load_record(load_matrix().folder, "torch")
    assert record is not None
    assert _module_of(record, Frame(path, 1, "run")) == module


@pytest.mark.parametrize(
    ("text", "specifier"),
    [
        *[("1.2", ">=1.2"), ("v1.2.", ">=1.2"), ("x1.2", ""), ("X1.2", ""), ("", "")],
        *[(">=1.2, <2", "<2,>=1.2"), (">= 1.2.", ">=1.2"), ("==0.43.1,", "==0.43.1")],
    ],
)
def test_a_release_that_a_message_names_is_the_least(text: str, specifier: str) -> None:
    assert _specifier(text) == specifier


@pytest.mark.parametrize(
    ("text", "capability"),
    [
        *[("8.0", "8.0"), ("80", "8.0"), ("90", "9.0"), ("120", "12.0"), ("7.5", "7.5"), ("9", "9.0")],
        *[("3", "3.0"), ("13", "13.0"), ("30", "3.0"), ("130", "13.0")],
        *[("2.9", ""), ("14", ""), ("29", ""), ("", ""), ("sm", "")],
    ],
)
def test_a_compute_capability_as_messages_write_it(text: str, capability: str) -> None:
    assert _capability(text) == capability


@pytest.mark.parametrize(
    ("listed", "before", "value"),
    [
        ("a, b or c, got d", "", "d"),
        ("a, b or c, but received 'e'", "'f' is none", "e"),
        ("a, b or c", "'f' is no kind, use", "f"),
        ("a, b or c", "'f' and 'g' are none, use", "g"),
        ("a, b or c", "one of", ""),
    ],
)
def test_the_value_that_a_list_refuses(listed: str, before: str, value: str) -> None:
    assert _given_value(listed, before) == value


@pytest.mark.parametrize(
    ("text", "number"), [("size (7)", "7"), ("7 or 9", "9"), ("none", ""), ("[3, 4]", "4")]
)
def test_the_last_number_of_a_message(text: str, number: str) -> None:
    assert _last_number(text) == number


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("torch>=2.1", ("torch", ">=2.1")),
        ("Torch_Geometric", ("torch-geometric", "")),
        ('triton==3.1.0; platform_system == "Linux"', ("triton", "==3.1.0")),
        ('triton==3.1.0; platform_system == "Windows"', None),
        ('tomli>=1; python_version < "3.11"', None),
        ('tomli>=1; python_version >= "3.11"', ("tomli", ">=1")),
        ('pytest; extra == "dev"', None),
        ("?", None),
    ],
)
def test_what_a_line_of_metadata_asks_for(line: str, asked: tuple[str, str] | None) -> None:
    environment = {
        "platform_system": "Linux", "python_version": "3.12", "python_full_version": "3.12.1",
        "sys_platform": "linux", "os_name": "posix", "platform_machine": "x86_64",
        "implementation_name": "cpython", "platform_python_implementation": "CPython",
        "platform_release": "", "platform_version": "", "implementation_version": "3.12.1",
    }  # fmt: skip
    found = _stated(line, environment, ())
    assert (found and (found.name, found.specifier)) == asked


def test_an_extra_s_demand_holds_where_the_extra_is_asked_for() -> None:
    found = _stated('pytest>=8; extra == "dev"', {"python_version": "3.12"}, ("dev",))
    assert found is not None
    assert (found.name, found.specifier) == ("pytest", ">=8")


@pytest.mark.parametrize(
    ("number", "condition", "holds"),
    [("8", ">=8", True), ("7", ">=8", False), ("8", ">8", False), ("8", "<=8,>2", True), ("x", ">8", None)],
)
def test_a_number_meets_a_condition(number: str, condition: str, holds: bool | None) -> None:
    assert number_satisfies(number, condition) is holds


@pytest.mark.parametrize(
    ("version", "below"), [("2.1", "2.0.9999"), ("2.0", "1.9999"), ("2.1.3", "2.1.2.9999"), ("0.0", "0")]
)
def test_a_version_just_below(version: str, below: str) -> None:
    assert _below(Version(version)) == below


def test_what_is_open_above_reaches_beyond_every_release() -> None:
    assert range_satisfies(">=1", "<999999") is None
    assert range_satisfies("1.2", ">=1") is None


@pytest.mark.parametrize(
    ("settings", "key", "text", "answer"),
    [
        ({}, "batch", "*", Answer(False)),
        ({}, "batch", ">8", UNKNOWN),
        ({"batch": "16"}, "batch", ">8", True),
        ({"batch": "8"}, "batch", ">8", False),
        ({"method": "lora"}, "method", "lora", True),
        ({"method": "full"}, "method", "lora", False),
    ],
)
def test_a_setting_is_judged_where_it_is_told(
    settings: dict[str, str], key: str, text: str, answer: Answer | bool
) -> None:
    found = _judge_setting(view(settings=settings), key, text)
    assert found == answer if isinstance(answer, Answer) else found.holds is answer


@pytest.mark.parametrize(
    ("settings", "method", "dtype"),
    [
        *[({}, "lora", "bf16"), ({}, "full", "fp32"), ({"bf16": "true"}, "full", "bf16")],
        *[({"pure_bf16": "true"}, "full", "bf16"), ({"dtype": "fp16"}, "full", "fp16")],
        ({"dtype": "auto"}, "full", "fp32"),
    ],
)
def test_the_dtype_in_which_weights_are_loaded(settings: dict[str, str], method: str, dtype: str) -> None:
    assert _loaded(view(settings=settings), method) == dtype


def test_a_wrong_list_of_architectures_is_replaced_by_the_cards_that_are_here() -> None:
    told = View(facts_of("sm_80", "sm_90"), load_matrix())
    (build, unset) = _arch_finding("ARCH", "x", "is wrong", "cause", told).remedies
    assert build.commands == ('export TORCH_CUDA_ARCH_LIST="8.0;9.0"',)
    (build, unset) = _arch_finding("ARCH", "x", "is wrong", "cause", View(Facts(), load_matrix())).remedies
    assert build.commands == ("export TORCH_CUDA_ARCH_LIST=9.0",)
    assert unset.commands == ("unset TORCH_CUDA_ARCH_LIST",)


def test_rules_and_rows_are_listed_as_what_they_are() -> None:
    kinds = {entry["id"]: entry["kind"] for entry in explained_checks(load_matrix())}
    assert kinds["SETTING-KEY"] == "rule"
    assert kinds["PAIR-TRL-BELOW-0.8"] == "row"
    assert set(kinds.values()) == {"rule", "row"}


@pytest.mark.parametrize(
    ("image", "driver", "told"),
    [("13.0", "550.54.14", True), ("12.8", "550.54.14", False), ("12.4", "580.65.06", False)],
)
def test_an_image_of_a_later_cuda_major_than_the_driver_s_is_told(
    image: str, driver: str, told: bool
) -> None:
    facts = Facts(
        driver=Driver(version=Observed(DriverVersion.parse(driver), "nvidia-smi")),
        toolkits=Observed((Toolkit(CudaVersion.parse(image), CONTAINER_IMAGE, "line 1"),), "line 1"),
    )
    found = [finding.id for finding in check_container_cuda(View(facts, load_matrix()))]
    assert found == (["DRIVER-CONTAINER-IMAGE"] if told else [])


@pytest.mark.parametrize(
    ("symptom", "name", "known"),
    [
        ("SYM-MODEL-TYPE", "xlm-roberta", "the model type xlm-roberta"),
        ("SYM-MODEL-TYPE", "qwen3_moe", "the model type qwen3_moe"),
        ("SYM-CONFIG-KEY", "qwen3", "the model type qwen3"),
        ("SYM-TOKENIZER-CLASS", "LlamaTokenizerFast", "the tokenizer LlamaTokenizerFast"),
        ("SYM-MODEL-TYPE", "nobody-knows", None),
    ],
)
def test_since_when_a_model_type_or_tokenizer_is_known(symptom: str, name: str, known: str | None) -> None:
    found = list(_known_since(View(Facts(), load_matrix()), Symptom(symptom, "", "", {"name": name})))
    assert {told for one in found for told in one if told.startswith("the ")} == ({known} if known else set())


def test_who_is_asked_is_no_package_that_a_whole_list_lacks() -> None:
    symptom = Symptom("SYM-UNEXPECTED-KWARG", "BitsAndBytesConfig.__init__() got an unexpected keyword", "")
    wanted = Wanted(Lack.KEYWORD, symptom, "bnb_4bit_quant_storage", owner="BitsAndBytesConfig.__init__")
    facts = facts_of(packages={"torch": "2.6.0"})
    whole = replace(facts, environment=replace(facts.environment, complete=True))
    assert _owner(View(facts, load_matrix()), wanted) == "transformers"
    assert _owner(View(whole, load_matrix()), wanted) != "transformers"


@pytest.mark.parametrize(
    ("version", "cuda", "told"),
    [
        *[(None, None, None), ("470.57.02", None, True), ("580.65.06", None, False)],
        *[(None, "11.4", True), (None, "12.8", False), ("470.57.02", "11.4", True)],
    ],
)
def test_a_driver_is_judged_by_its_version_or_by_its_cuda_alone(
    version: str | None, cuda: str | None, told: bool | None
) -> None:
    facts = facts_of("sm_80", driver=version, driver_cuda=cuda, packages={"torch": "2.6.0+cu124"})
    if told is None:
        with pytest.raises(Skip):
            list(check_driver_for_torch(View(facts, load_matrix())))
    else:
        assert bool(list(check_driver_for_torch(View(facts, load_matrix())))) is told


@pytest.mark.parametrize(
    ("gpus", "told", "count"),
    [(("A100 80GB",), None, 1), (("A100 80GB",), "4", 4), (("A100 80GB", "A100 80GB"), "1", 2)],
)
def test_one_named_card_stands_for_all_that_a_run_is_on(
    gpus: tuple[str, ...], told: str | None, count: int
) -> None:
    sized = tuple(Gpu(n, "declared", name=name, memory_total_bytes=80 << 30) for n, name in enumerate(gpus))
    facts = replace(facts_of(settings={"gpus": told} if told else {}), gpus=Observed(sized, "declared"))
    assert card_of(View(facts, load_matrix())).count == count


def test_a_card_that_is_merely_named_may_be_one_of_several() -> None:
    text = "GPU: A100 80GB\n$ accelerate launch train.py\ntorch.OutOfMemoryError: CUDA out of memory.\n"
    matrix = load_matrix()
    found = diagnose_facts(parse_paste(text, "", matrix.lexicon), matrix).findings
    assert "OOM-DATA-PARALLEL" in [finding.id for finding in found]
