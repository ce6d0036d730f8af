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
