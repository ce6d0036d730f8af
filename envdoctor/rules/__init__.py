"""Judging: pure functions from facts and matrix to findings. One file a family, one line here."""

from __future__ import annotations

from envdoctor.rules.base import AFTERWARDS, Listed, Rule, Skip, family
from envdoctor.rules.runner import run_checks

RULES: tuple[Listed, ...] = (
    *family("driver", "DRIVER-TOO-OLD DRIVER-SUFFICES DRIVER-GPU DRIVER-END-OF-LIFE"),
    *family("arch", "TORCH-ARCH EXTENSION-NO-KERNEL TORCH-CPU-BUILD TORCH-WINDOWS-CPU"),
    *family("architectures", "MODEL-UNKNOWN", of="symptoms"),
    *family("arguments", "ARGUMENT-UNKNOWN", of="symptoms"),
    *family("attributes", "ATTRIBUTE-MISSING", of="symptoms"),
    *family("pairs", "VLLM-TORCH XFORMERS-TORCH TORCHVISION-TORCH TORCHAUDIO-TORCH TORCHAO-TORCH"),
    *family("pairs", "TORCHTEXT-TORCH TORCHCODEC-TORCH"),
    *family("libcuda", "DRIVER-USER-LIBRARY DRIVER-CONTAINER-IMAGE"),
    *family("libraries", "CUDA-PACKAGES-MIXED NVJITLINK-OLD CUDNN-OLD-COPY"),
    *family("host", "GPU-STATE XID GPU-PCIE-WIDTH DISK-FULL"),
    *family("containers", "IMAGE-NO-NVCC IMAGE-TORCH-FIRST IMAGE-CUDA-MAJOR", of="settings"),
    *family("containers", "IMAGE-PYTHON IMAGE-DRIVER-CAPABILITIES", of="settings"),
    *family("features", "DTYPE-BF16 DTYPE-TF32 DTYPE-FP8 DTYPE-FP8-FBGEMM DTYPE-FP4 DTYPE-MXFP4"),
    *family("features", "FLASH-ATTN-CC FLASH-ATTN-3-CC"),
    *family("attention", "FLASH-ATTN-NO-KERNEL XFORMERS-ARCH FLASH-ATTN-GLIBC"),
    *family("abi", "EXTENSION-ABI"),
    *family("bitsandbytes", "BNB-BINARY"),
    *family("build_libraries", "BUILD-LIBRARY-ABSENT", of="symptoms"),
    *family("clashes", "PIP-CLASH", of="symptoms"),
    *family("extensions", "DS-CUDA-MISMATCH"),
    *family("fit", "MEM-WEIGHTS MEM-FULL-TRAINING"),
    *family("found_older", "FOUND-INCOMPATIBLE", of="symptoms"),
    *family("generations", "RELEASES-APART", of="symptoms"),
    *family("installs", "INSTALL"),
    *family("interfaces", "INTERFACE-MISSING", of="symptoms"),
    *family("minimums", "TRANSFORMERS-MINIMUM"),
    *family("modules", "MODULE-MISSING", of="symptoms"),
    *family("not_seen", "CUDA-NOT-SEEN", of="symptoms"),
    *family("own_modules", "MODULE-HIDDEN", of="symptoms"),
    *family("refusals", "REQUIREMENT-REFUSED", of="symptoms"),
    *family("removals", "REMOVED-IN", of="symptoms"),
    *family("requirements", "REQUIREMENT-UNMET PRE-RELEASE-UNKNOWN"),
    *family("settings_data", "DATA", of="settings"),
    *family("settings_files", "SETTING-KEY", of="settings"),
    *family("serving_fit", "VLLM-BUDGET", of="settings"),
    *family("settings_fit", "MEM-RUN", of="settings"),
    *family("static_fit", "SGLANG-SHARE", of="settings"),
    *family("settings_relations", "SETTING-RELATION", of="settings"),
    *family("taken", "MODEL-TYPE-TAKEN", of="symptoms"),
    *family("smokes", "SMOKE-FAILED SMOKE-CONTRADICTS", of="verdicts"),
    *family("variables", "ARCH-LIST ALLOC-CONF BNB-OVERRIDE IMPORT-PATH"),
    *family("variants", "TORCH-VARIANT-MIXED"),
    *family("visibility", "GPU-HIDDEN GPU-ORDER GPU-LOST GPU-REACHABLE GPU-MIG-EMPTY"),
    *family("occupancy", "GPU-ROOM GPU-EXCLUSIVE-TAKEN"),
    *family("ran_out", "OOM-NEIGHBOUR", of="symptoms"),
    *family("wheels", "PYTHON-NO-WHEEL", of="symptoms"),
    *family("variant_index", "TORCH-VARIANT-NONE", of="symptoms"),
    *family("unbound", "NAME-UNBOUND", of="symptoms"),
    *family("unbuilt", "BUILD-OTHER-TORCH", of="symptoms"),
    *family("unread", "UNREAD"),
    *family("untried", "RELEASES-UNTRIED"),
    *family("warned", "WARNING-KNOWN WARNING-STRANGE", of="warnings"),
)
"""In the order of judging."""

__all__ = ["AFTERWARDS", "RULES", "Listed", "Rule", "Skip", "run_checks"]
