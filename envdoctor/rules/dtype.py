"""Number formats that a run asks for against the GPUs that must compute in them."""

from __future__ import annotations

from envdoctor.rules.features import feature_rules

RULES = feature_rules(
    {
        "DTYPE-BF16": "bf16 is asked for only where the GPUs compute in it",
        "DTYPE-TF32": "tf32 is asked for only where the GPUs have it",
        "DTYPE-FP8": "fp8 is asked for only where the GPUs have it",
        "DTYPE-FP8-FBGEMM": "fbgemm's fp8 is asked for only on Hopper and newer",
        "DTYPE-FP4": "nvfp4 is asked for only on Blackwell",
        "DTYPE-MXFP4": "mxfp4 is asked for only where its kernels run",
    }
)
