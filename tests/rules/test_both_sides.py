"""Of two packages that do not suit each other both ways out are offered, with releases that mend it."""

import pytest

from envdoctor.diagnosis import diagnose_facts
from envdoctor.findings import Finding, Severity
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste

SYMBOL = "_ZN2at4_ops15to_dtype_layout4callERKNS_6TensorEN3c108optionalINS5_10ScalarTypeEEE"
CASES = {
    "the major from before the line": (
        'pydantic: 2.0\n\n  File "/x/site-packages/pydantic/dataclasses.py", line 139, in dataclass\n'
        "    assert init is False, 'pydantic.dataclasses.dataclass only supports init=False'\n"
        "AssertionError: pydantic.dataclasses.dataclass only supports init=False\n",
        "RAISED-BY-LIBRARY",
        {"pydantic": "==1.10.27"},
    ),
    "the nearest torch that takes the triton which is there": (
        "torch==2.0.1+cu118\ntriton==2.1.0\n\n"
        "torch 2.0.1+cu118 requires triton==2.0.0, but you have triton 2.1.0 which is incompatible.\n",
        "REQUIREMENT-UNMET",
        {"torch": "==2.1.2"},
    ),
    "the first torch that has the variant": (
        "ERROR: Could not find a version that satisfies the requirement torch==2.0.1+cu121\n",
        "TORCH-VARIANT-NONE",
        {"torch": "==2.1.*"},
    ),
    "the torch that asks for this NCCL": (
        "torch: 2.13.0\nnvidia-nccl-cu12: 2.21.5\n\n"
        "ImportError: /x/torch/lib/libtorch_cuda.so: undefined symbol: ncclCommResume\n",
        "NCCL-COPY-OLD",
        {"torch": "==2.6.0"},
    ),
    "the one that looks, from before it asked": (
        "auto-gptq: 0.4.2\nTraceback (most recent call last):\n"
        '  File "/x/site-packages/optimum/utils/import_utils.py", line 116, in is_auto_gptq_available\n'
        "ImportError: Found an incompatible version of auto-gptq. Found version 0.4.2, but only version above"
        " 0.4.99 are supported\n",
        "FOUND-INCOMPATIBLE",
        {"optimum": "==1.13.2"},
    ),
    "the torch that there is a ready wheel for": (
        "torch: 2.7.0\nmamba-ssm: 2.2.4\n\nERROR: Failed building wheel for mamba-ssm\n",
        "BUILD-OTHER-TORCH",
        {"torch": "==2.5.1"},
    ),
    "an extension for a later torch": (
        f"vllm: 0.2.3\n\nImportError: /x/vllm/_C.cpython-310.so: undefined symbol: {SYMBOL}\n",
        "ABI-VLLM",
        {"vllm": ">=0.4.3"},
    ),
    "a package that is told without its release": (
        "trl: latest\n\n"
        "TypeError: Trainer.__init__() got an unexpected keyword argument 'processing_class'\n",
        "INTERFACE-MISSING",
        {"trl": "==0.11.4"},
    ),
    "the library that hands an override what its base came to take": (
        "TypeError: LlavaLlamaForCausalLM.forward() got an unexpected keyword argument 'cache_position'\n",
        "INTERFACE-MISSING",
        {"transformers": "==4.37.2"},
    ),
    "a package by which another one was replaced": (
        "torch: 2.6.0 locked, upgraded to 2.7.0\n\nflash_attn: undefined symbol errors at runtime\n",
        "RELEASE-BLAMED",
        {"torch": "==2.6.0"},
    ),
    "a release instead of a candidate": (
        "transformers: 5.0 rc1\n\nframe.ActorError: Actor call DatasetActor.setup failed.\n",
        "RELEASE-SUSPECTED",
        {"transformers": "==4.57.6"},
    ),
}


def found(text: str) -> dict[str, Finding]:
    matrix = load_matrix()
    facts = parse_paste(text, "", matrix.lexicon, "issue.md")
    return {finding.id: finding for finding in diagnose_facts(facts, matrix).findings}


@pytest.mark.parametrize(("text", "identity", "pins"), CASES.values(), ids=CASES.keys())
def test_a_way_out_names_the_releases_that_mend_it(text: str, identity: str, pins: dict[str, str]) -> None:
    assert pins in [dict(remedy.pins) for remedy in found(text)[identity].remedies]


def test_what_pip_calls_incompatible_is_an_error_even_where_it_loads() -> None:
    text = "torchvision 0.18.1 requires torch==2.3.1, but you have torch 2.3.0 which is incompatible.\n"
    assert all(found(text)[i].severity is Severity.ERROR for i in ("TORCHVISION-TORCH", "REQUIREMENT-UNMET"))


@pytest.mark.parametrize(
    "text",
    [
        "NumPy 2.1.1 as it may crash. To support both 1.x and 2.x\n",
        "import mamba_ssm -> import selective_scan_cuda: ImportError (torch.__version__ == 2.3)\n",
        "(checkpoint directory without adapter_model.bin; no traceback)\n",
        "WARNING 08-27 13:59:59 _custom_ops.py:15] Failed to import from vllm._C with ImportError('x.so')\n",
    ],
)
def test_a_line_that_reads_as_an_error_is_one_alone_as_well(text: str) -> None:
    assert any(finding.severity is Severity.ERROR for finding in found(text).values())


def test_a_wish_is_no_failure_though_one_stands_in_it() -> None:
    wish = found("Add support for error handling when a download fails\n")
    assert not any(finding.severity is Severity.ERROR for finding in wish.values())
