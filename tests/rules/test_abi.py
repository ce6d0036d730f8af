"""An undefined symbol tells which torch the binary was built against."""

from __future__ import annotations

import pytest
from declared import facts_of, found, pasted, pins, seen

LIB = "flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"
NEW_ABI = "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
OLD_ABI = "_ZN3c105ErrorC2ENS_14SourceLocationESs"
SET_DEVICE_INT = "_ZN3c104cuda9SetDeviceEi"
OLD_STRING_LAST = (
    "_ZN3c107WarningC1ESt7variantIJNS0_11UserWarningENS0_18DeprecationWarningEEERKNS_14SourceLocationESsb"
)


def undefined(lib: str, symbol: str):
    return seen(
        "SYM-UNDEFINED-SYMBOL", f"ImportError: {lib}: undefined symbol: {symbol}", lib=lib, symbol=symbol
    )


@pytest.mark.parametrize(
    ("torch", "flash", "symbol", "pin"),
    [
        ("2.7.1", "2.7.4.post1", OLD_ABI, {"flash-attn": ">=2.8.0.post1"}),
        ("2.6.0", "2.6.3", NEW_ABI, {"flash-attn": ">=2.7.4,<=2.7.4.post1"}),
        ("2.3.0", "2.5.7", SET_DEVICE_INT, {"flash-attn": ">=2.5.8,<=2.7.4.post1"}),
    ],
)
def test_flash_attn_is_exchanged_for_one_with_a_wheel(
    torch: str, flash: str, symbol: str, pin: dict[str, str]
) -> None:
    facts = facts_of(packages={"torch": torch, "flash-attn": flash}, symptoms=(undefined(LIB, symbol),))
    assert pins(found(facts)["ABI-FLASH-ATTN"])[0] == pin


def test_or_torch_is_exchanged_for_one_that_the_release_has_wheels_for() -> None:
    facts = facts_of(
        packages={"torch": "2.9.1", "flash-attn": "2.8.3"}, symptoms=(undefined(LIB, SET_DEVICE_INT),)
    )
    assert {"torch": ">=2.4,<2.9"} in pins(found(facts)["ABI-FLASH-ATTN"])


def test_a_pre_release_of_torch_fits_no_public_wheel() -> None:
    facts = facts_of(packages={"torch": "2.2.0a0+81ea7a4"}, symptoms=(undefined(LIB, OLD_ABI),))
    finding = found(facts)["ABI-FLASH-ATTN"]
    assert "NGC" in finding.cause
    assert pins(finding) == [{}, {}]


def test_the_symbol_alone_names_the_torch_that_vllm_was_built_for() -> None:
    symbol = "_ZN2at4_ops15to_dtype_layout4callERKNS_6TensorEN3c108optionalINS5_10ScalarTypeEEE"
    line = undefined("vllm/_C.cpython-310-x86_64-linux-gnu.so", symbol)
    assert {"torch": "==2.1.*"} in pins(found(facts_of(symptoms=(line,)))["ABI-VLLM"])


@pytest.mark.parametrize(
    ("package", "version", "lib"),
    [("vllm", "0.6.3", "vllm/_C.abi3.so"), ("torchvision", "0.19.0", "torchvision/_C.so")],
)
def test_what_was_built_for_the_torch_that_is_there_is_told_no_other(
    package: str, version: str, lib: str
) -> None:
    line = undefined(lib, OLD_ABI)
    fits, not_ = (
        found(facts_of(packages={"torch": torch, package: version}, symptoms=(line,)))
        for torch in ("2.4.0", "2.5.1")
    )
    assert pins(fits[f"ABI-{package.upper()}"]) == [{}]
    assert {"torch": "==2.4.0"} in pins(not_[f"ABI-{package.upper()}"])


def test_torch_2_6_is_told_to_be_split_over_two_binary_interfaces() -> None:
    facts = facts_of(packages={"torch": "2.6.0+cu126"}, symptoms=(undefined(LIB, OLD_ABI),))
    assert "split" in found(facts)["ABI-FLASH-ATTN"].cause


def test_any_extension_is_recognised_by_its_library() -> None:
    line = undefined("causal_conv1d_cuda.cpython-310-x86_64-linux-gnu.so", OLD_ABI)
    assert "ABI-CAUSAL-CONV1D" in found(facts_of(packages={"torch": "2.7.1"}, symptoms=(line,)))


def test_symbols_of_other_libraries_are_left_to_other_checks() -> None:
    line = undefined("libcusparse.so.12", "__nvJitLinkComplete_12_4")
    assert not any(i.startswith("ABI-") for i in found(facts_of(symptoms=(line,))))


@pytest.mark.parametrize(
    ("package", "version", "lib", "torch", "pin"),
    [
        (
            "sgl-kernel",
            "0.2.5",
            "sgl_kernel/common_ops.abi3.so",
            None,
            {"torch": "==2.7.*"},
        ),  # sglang names both
        (
            "sglang-kernel",
            "0.4.2",
            "sgl_kernel/common_ops.abi3.so",
            "2.9.1",
            {"sglang-kernel": ">=0.4.0,<=0.4.1.post1"},
        ),
        (
            "autoawq-kernels",
            "0.0.7",
            "awq_ext.cpython-310-x86_64-linux-gnu.so",
            "2.4.0",
            {"autoawq-kernels": "==0.0.8"},
        ),
        ("autoawq-kernels", "0.0.8", "awq_ext.cpython-310-x86_64-linux-gnu.so", None, {"torch": "==2.4.*"}),
        (
            "autoawq-kernels",
            None,
            "awq_ext.cpython-310-x86_64-linux-gnu.so",
            "2.4.1",
            {"autoawq-kernels": "==0.0.8"},
        ),
    ],
)
def test_where_no_wheel_tells_its_owner_or_its_day_names_the_torch(
    package: str, version: str | None, lib: str, torch: str | None, pin: dict[str, str]
) -> None:
    packages = {name: told for name, told in ((package, version), ("torch", torch)) if told}
    facts = facts_of(packages=packages, symptoms=(undefined(lib, OLD_ABI),))
    assert pins(found(facts)[f"ABI-{package.upper()}"])[0] == pin


def test_what_an_owner_names_together_mends_a_kernel_of_no_told_release() -> None:
    finding = found(facts_of(symptoms=(undefined("sgl_kernel/common_ops.so", OLD_ABI),)))["ABI-SGL-KERNEL"]
    assert set(pins(finding)[0]) == {"sglang-kernel", "torch"}


def test_macos_tells_a_missing_symbol_in_its_own_words() -> None:
    text = (
        "torch 2.9.0\nOSError: dlopen(/v/lib/python3.11/site-packages/torchaudio/lib/_torchaudio.so, 0x6): "
        "Symbol not found: _torch_library_impl\n"
        "  Referenced from: <5B9A> /v/lib/python3.11/site-packages/torchaudio/lib/_torchaudio.so"
    )
    assert pins(pasted(text)["ABI-TORCHAUDIO"])[0] == {"torchaudio": "==2.9.0"}


def test_a_string_of_the_old_abi_is_seen_among_the_types_and_in_no_name() -> None:
    """`Ss` is a type where it stands alone; in `5Class` and its likes it is a part of a name."""
    facts = facts_of(
        packages={"torch": "2.6"}, symptoms=(undefined("selective_scan_cuda.so", OLD_STRING_LAST),)
    )
    finding = found(facts)["ABI-MAMBA-SSM"]
    assert "old C++ ABI" in finding.cause
    assert "torch 2.6.0 is split" in finding.cause
    named = undefined("selective_scan_cuda.so", "_ZN3c1011ClassSsaved3getEi")
    assert (
        "ABI (cxx11"
        not in found(facts_of(packages={"torch": "2.6"}, symptoms=(named,)))["ABI-MAMBA-SSM"].cause
    )
