"""What is said holds: no library is asked for that nobody asked for, no card has the machine's memory."""

from __future__ import annotations

from envdoctor.diagnosis import diagnose_facts
from envdoctor.facts import Facts
from envdoctor.findings import Certainty, Finding, Severity
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste


def read(text: str) -> Facts:
    return parse_paste(text, "", load_matrix().lexicon)


def found_in(text: str) -> dict[str, Finding]:
    return {f.id: f for f in diagnose_facts(read(text)).findings}


OVERRIDDEN = """\
WARNING: BNB_CUDA_VERSION=124 environment variable detected; loading libbitsandbytes_cuda124.so.
Could not find the bitsandbytes CUDA binary at PosixPath('/n/bitsandbytes/libbitsandbytes_cuda124.so')
"""


def test_a_library_that_a_variable_asks_for_is_not_said_to_be_torchs() -> None:
    found = found_in(OVERRIDDEN)
    assert "BNB-BINARY" not in found
    assert found["BNB-OVERRIDE"].remedies[0].commands == ("unset BNB_CUDA_VERSION",)
    assert read(OVERRIDDEN).environment.builds.get("torch") is None
    assert "BNB-BINARY" in found_in(OVERRIDDEN.splitlines()[1])


def test_a_symbol_is_of_one_range_of_torch() -> None:
    symbol = "_ZN2at4_ops15sum_IntList_out4callERKNS_6TensorEN3c1016OptionalArrayRefIlEEbSt8optionalINS5_1"
    text = f"torch 2.1.2\nImportError: /x/flash_attn_2_cuda.so: undefined symbol: {symbol}\n"
    finding = found_in(text)["ABI-FLASH-ATTN"]
    assert "torch >=2.2" in finding.cause
    assert "<2.2" not in finding.cause


def test_a_symbol_that_the_linker_calls_not_defined_is_an_undefined_one() -> None:
    symbol = (
        "symbol __nvJitLinkComplete_12_4, version libnvJitLink.so.12 not defined in file libnvJitLink.so.12"
    )
    assert "NVJITLINK-OLD" in found_in(f"ImportError: libcusparse.so.12: {symbol}")


def test_a_message_that_a_mail_breaks_is_read_whole() -> None:
    text = "RuntimeError: DataLoader worker (pid 47) is killed by signal: Bus\nerror. It is possible that\n"
    assert [*found_in(text)] == ["SHM-SMALL-SEEN"]


def test_the_machines_memory_and_disk_are_none_of_the_cards() -> None:
    (card,) = read(
        "Hardware: a single A10G with 128 GiB of memory, and 600 GB of local NVMe storage\n"
    ).gpus.require()
    assert (card.name, card.memory_total_bytes) == ("A10G", None)
    (card,) = read("GPU: RTX 4090 48GB\n").gpus.require()
    assert card.memory_total_bytes


def test_a_line_of_information_is_no_error() -> None:
    said = "libtpu.so: cannot open shared object file: No such file or directory"
    informed = found_in(f"I0124 13:07:20.768469 140638 xla_bridge.py:660] Failed to open libtpu.so: {said}")
    assert not [f for f in informed.values() if f.severity is Severity.ERROR]
    assert [f for f in found_in(said).values() if f.severity is Severity.ERROR]


def test_a_notice_of_tensorflow_is_a_note() -> None:
    line = (
        "E0000 00:00:1736 cuda_dnn.cc:8310] Unable to register cuDNN factory: Attempting to register factory"
    )
    assert found_in(line)["TF-REGISTERED"].severity is Severity.NOTE


def test_an_empty_weight_of_a_checkpoint_was_not_gathered() -> None:
    text = (
        "RuntimeError: Error(s) in loading state_dict for LlamaForCausalLM:\n"
        "\tsize mismatch for model.embed_tokens.weight: copying a param with shape torch.Size([0]) from"
        " checkpoint, the shape in current model is torch.Size([32000, 4096]).\n"
    )
    finding = found_in(text)["CHECKPOINT-EMPTY-WEIGHT"]
    assert finding.certainty is Certainty.LIKELY
    assert "zero_to_fp32" in finding.remedies[0].commands[0]


def test_what_a_form_asked_about_and_was_not_done_is_no_way_out() -> None:
    text = (
        "1. Did you update? `pip install --upgrade unsloth unsloth_zoo`     ==> NO\n"
        "NotImplementedError: Unsloth cannot find any torch accelerator? You need a GPU.\n"
    )
    assert not any("way:" in remedy.text for f in found_in(text).values() for remedy in f.remedies)


def test_an_extension_built_for_numpy_1_asks_for_numpy_1() -> None:
    said = "numpy.dtype size changed, may indicate binary incompatibility."
    line = f"ValueError: {said} Expected {{}} from C header, got {{}}"
    raised = found_in(line.format(96, 88) + " from PyObject")
    assert raised["NUMPY-2-LOADED"].remedies[0].pins == {"numpy": "==1.26.4"}
    assert "NUMPY-DTYPE-SIZE" not in raised
    assert "NUMPY-2-LOADED" not in found_in(line.format(88, 96) + " from PyObject")


def test_an_attribute_that_the_told_release_has_is_not_said_to_be_gone_from_it() -> None:
    line = "AttributeError: 'Qwen2Tokenizer' object has no attribute 'all_special_tokens_extended'"
    for told in ("4.54", "4.54.1"):
        assert "ATTRIBUTE-MISSING" not in found_in(f"transformers {told}\n{line}\n")
    assert found_in(f"transformers 5.0.0\n{line}\n")["ATTRIBUTE-MISSING"].certainty is Certainty.CERTAIN


def test_versions_stand_behind_arrows_and_in_the_names_of_images() -> None:
    text = "pip show torch -> 2.7.0, pip show torchaudio -> 2.6.0\nimage vllm/vllm-openai:v0.8.2\n"
    told = {name: d.version for name, d in read(text).environment.distributions.items()}
    assert told == {"torch": "2.7.0", "torchaudio": "2.6.0", "vllm": "0.8.2"}


def test_a_card_that_a_message_names_as_an_example_is_nobodys() -> None:
    text = "FP8 quantized models is only supported on compute capability >= 8.9 (e.g 4090/H100)\nusing 3090\n"
    assert [card.name for card in read(text).gpus.require()] == ["NVIDIA GeForce RTX 3090"]


def test_a_server_gets_no_advice_for_training() -> None:
    text = "running vllm serve on 2 gpus\nRuntimeError: CUDA error: out of memory\n2x3090, 70B awq\n"
    advice = " ".join(remedy.text for f in found_in(text).values() for remedy in f.remedies)
    assert "ZeRO" not in advice
    assert "gradient" not in advice


def test_a_plan_splits_no_model_over_cards_that_are_not_told() -> None:
    text = "sglang 0.4.3\nRuntimeError: Not enough memory. Please try to increase --mem-fraction-static.\n"
    assert not any(
        "--tp" in c for f in found_in(f"GPU: L40S\n{text}").values() for r in f.remedies for c in r.commands
    )


def test_a_question_and_an_attempt_are_no_ways_out() -> None:
    text = "However, if I set it to 0.84, I receive the following error:\nAny insights or workarounds?\n"
    found = found_in(f"{text}RuntimeError: the gizmo is blue\n")
    assert not any("way:" in remedy.text for f in found.values() for remedy in f.remedies)


CUT = """\
Traceback (most recent call last):
  File "/v/lib/python3.10/site-packages/accelerate/accelerator.py", line 34, in <module>
    from huggingface_hub import split_torch_state_dict_into_shards
ImportError: cannot import name 'split_torch_state_dict_into_sh
"""


def test_a_name_that_is_cut_off_is_read_where_it_is_imported() -> None:
    finding = found_in(CUT)["INTERFACE-MISSING"]
    assert finding.summary.startswith("split_torch_state_dict_into_shards in huggingface_hub: only")
    assert finding.remedies[0].pins == {"huggingface-hub": ">=0.21.4"}


def test_a_name_that_an_import_misses_is_no_package() -> None:
    name = "split_torch_state_dict_into_shards"
    text = (
        f"ImportError: cannot import name '{name}' from 'huggingface_hub'\n"
        f"ERROR: Could not find a version that satisfies the requirement {name} (from versions: none)\n"
    )
    found = found_in(text)
    assert found["INDEX-OFFERS-NONE"].severity is Severity.WARNING
    assert "huggingface_hub" in found["INDEX-OFFERS-NONE"].summary
    assert next(iter(found)) == "INTERFACE-MISSING"


def test_no_release_from_before_a_gone_argument_came_is_advised() -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/v/lib/python3.10/site-packages/trl/trainer/sft_trainer.py", line 401, in __init__\n'
        "    super().__init__(\n"
        "TypeError: Trainer.__init__() got an unexpected keyword argument 'tokenizer'\n"
    )
    pins = [remedy.pins.get("trl") for remedy in found_in(text)["INTERFACE-MISSING"].remedies]
    assert ">=0.27.2" in pins
    assert "<0.0.3" not in pins


def test_a_conflict_is_told_whatever_uv_says_of_the_releases_there_are() -> None:
    text = (
        "Because only vllm==0.19.1+cu130 is available and\n"
        "vllm==0.19.1+cu130 depends on torchvision==0.25.0,\n\n"
        "and simpletuner[cuda13]==4.4.0 depends on torchvision>=0.26.0\nand vllm,\n\n"
        "simpletuner[cuda13]==4.4.0 cannot be used.\n"
    )
    found = found_in(text)
    assert next(iter(found)) == "PIP-CLASH"
    assert "torchvision" in found["PIP-CLASH"].summary


def test_a_python_that_torch_compile_did_not_know_yet_leads_to_the_torch_that_does() -> None:
    """The messages stand in torch 2.0 (3.11), 2.1 to 2.3 (3.12), 2.4 and 2.5 (3.13), 2.6 to 2.9 (3.14)."""
    for line, torch in (
        ("RuntimeError: Python 3.11+ not yet supported for torch.compile", ">=2.1.2"),
        ("RuntimeError: Dynamo is not supported on Python 3.12+", ">=2.4.1"),
        ("RuntimeError: Dynamo is not supported on Python 3.13+", ">=2.6"),
        ("RuntimeError: Python 3.14+ not yet supported for torch.compile", ">=2.10"),
    ):
        finding = found_in(f"{line}\n")["DYNAMO-PYTHON"]
        assert finding.remedies[0].pins == {"torch": torch}
