"""Facts of a machine on which nearly every rule finds something."""

from __future__ import annotations


def sent() -> dict:
    """Facts of a machine on which nearly every rule finds something."""
    packages = {
        "torch": "2.4.0",
        "transformers": "4.40.0",
        "flash-attn": "2.5.0",
        "xformers": "0.0.20",
        "bitsandbytes": "0.41.0",
        "torchvision": "0.15.0",
        "vllm": "0.4.0",
        "trl": "0.7.0",
        "deepspeed": "0.10.0",
        "numpy": "2.1.0",
        "nvidia-nccl-cu11": "2.14.3",
        "nvidia-nccl-cu12": "2.20.5",
    }
    distributions = {
        name: {
            "name": name,
            "source": "pip list, line 1",
            "version": version,
            "specifier": "",
            "location": "/site",
            "installer": "pip",
            "requires": ["numpy<2", "torch==2.9.0", "peft>=0.99"],
            "problems": ["its module is missing"],
        }
        for name, version in packages.items()
    }
    text = {"value": "3.12", "source": "x"}
    gpu = {"index": 0, "source": "NVML", "name": "NVIDIA GeForce RTX 5090", "compute_capability": "12.0"}
    verdict = {"op": "matmul.bf16", "outcome": "failed", "source": "smoke", "reason": "no kernel image"}
    return {
        "schema": "envdoctor.facts/1",
        "origin": "probe",
        "driver": {
            "version": {"value": "470.57.02", "source": "NVML"},
            "cuda": {"value": "11.4", "source": "NVML"},
            "nvml": {"value": "Driver/library version mismatch", "source": "NVML"},
            "xids": [{"number": 79, "pci_bus": "0000:00:06.0", "text": "NVRM: Xid 79"}],
        },
        "gpus": {
            "value": [
                {
                    **gpu,
                    "mig": "Enabled",
                    "compute_mode": "Prohibited",
                    "ecc_uncorrected": 3,
                    "remapped_rows_pending": True,
                    "processes": [{"pid": 1, "name": "python", "bytes": 1}],
                }
            ],
            "source": "NVML",
        },
        "host": {
            "os": {"value": "linux", "source": "x"},
            "distro": {"value": "Ubuntu 22.04", "source": "x"},
            "glibc": {"value": "2.27", "source": "x"},
            "arch": {"value": "x86_64", "source": "x"},
            "disk_free_bytes": {"hf_cache": 1, "tmp": 1},
        },
        "toolkits": {
            "value": [{"version": "11.8", "path": "/usr/local/cuda", "source": "CUDA_HOME", "active": True}],
            "source": "x",
        },
        "libraries": [
            {
                "name": "cudnn",
                "path": "/usr/lib/libcudnn.so.8",
                "origin": "LD_LIBRARY_PATH",
                "version": "8.9",
                "cuda_major": 11,
                "wins": True,
            }
        ],
        "environment": {
            "python": text,
            "executable": {"value": "/venv/bin/python", "source": "x"},
            "prefix": {"value": "/venv", "source": "x"},
            "kind": {"value": "venv", "source": "x"},
            "distributions": distributions,
            "complete": True,
            "builds": {"torch": {"cuda": "12.1", "arch_list": ["sm_80", "sm_90"]}},
        },
        "variables": {"LD_LIBRARY_PATH": "/usr/local/cuda/lib64", "CUDA_VISIBLE_DEVICES": "-1"},
        "settings": [
            {
                "key": "attention",
                "value": "flash_attention_2",
                "source": "a.yaml",
                "native_key": "attn_implementation",
                "framework": "transformers",
            },
            {
                "key": "evaluation_strategy",
                "value": "steps",
                "source": "a.yaml",
                "native_key": "evaluation_strategy",
                "framework": "transformers",
            },
        ],
        "verdicts": [verdict, {**verdict, "op": "attention.flash@0", "outcome": "crashed"}],
        "notes": ["a note"],
    }
