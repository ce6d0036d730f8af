"""What each tool prints is read for what it tells, and cited by line."""

from __future__ import annotations

import pytest

from envdoctor.facts import ComputeCapability

GIB = 1 << 30
MIB = 1 << 20


def test_collect_env_of_torch(read, sample):
    facts = read(sample("h200-collect_env.txt"))
    torch = facts.distribution("torch")
    assert (torch.version, torch.source) == ("2.11.0+cu130", "line 3")
    assert facts.environment.builds["torch"]["cuda"] == "13.0"
    assert str(facts.driver.version.value) == "580.159.04"
    assert facts.driver.version.source == "line 20"
    assert [gpu.name for gpu in facts.gpus.value] == ["NVIDIA H200"]
    assert [(str(t.version), t.active) for t in facts.toolkits.value] == [("13.0", True)]
    assert facts.host.glibc.value == "2.39"
    assert facts.host.distro.value == "Ubuntu 24.04.3"
    assert facts.environment.python.value == "3.12.3"
    assert facts.distribution("nvidia-nccl-cu13").version == "2.28.9"
    assert not facts.environment.complete


def test_collect_env_of_vllm_inside_details(read, sample):
    facts = read(sample("vllm_collect_env.md"))
    assert facts.distribution("vllm").version == "0.10.0"
    assert facts.distribution("torch").version == "2.7.1+cu126"
    assert [gpu.name for gpu in facts.gpus.value] == ["NVIDIA RTX A6000"] * 2
    assert facts.variables == {
        "NCCL_P2P_DISABLE": "1",
        "LD_LIBRARY_PATH": "/usr/local/cuda/lib64",
        "VLLM_USE_V1": "0",
    }


def test_transformers_env(read, sample):
    facts = read(sample("transformers_env.txt"))
    assert facts.distribution("transformers").version == "4.38.2"
    assert facts.distribution("torch").version == "2.1.0+cu121"
    assert facts.distribution("tensorflow") is None
    assert facts.environment.python.value == "3.10.13"
    assert facts.host.kernel.value == "5.15.0-1034-azure"


def test_accelerate_env(read, sample):
    facts = read(sample("h200-accelerate_env.txt"))
    assert facts.distribution("accelerate").version == "1.15.0"
    assert [gpu.name for gpu in facts.gpus.value] == ["NVIDIA H200"]
    assert facts.host.memory_total_bytes.value == int(125.87 * GIB)


def test_ds_report_with_colours(read, sample):
    facts = read(sample("ds_report.txt"))
    assert facts.distribution("deepspeed").version == "0.14.0"
    assert facts.distribution("torch").version == "2.1.2+cu121"
    assert [str(t.version) for t in facts.toolkits.value] == ["11.8"]
    assert facts.host.shm_bytes.value == int(503.76 * GIB)


def test_bitsandbytes(read, sample):
    facts = read(sample("h200-bnb.txt"))
    assert facts.distribution("bitsandbytes").version == "0.50.2"
    assert facts.distribution("diffusers") is None
    assert facts.environment.builds["torch"]["cuda"] == "13.0"
    assert facts.gpus.value[0].compute_capability == ComputeCapability(9, 0)
    assert facts.toolkits.get() is None


def test_xformers_info_tells_the_installed_torch_and_not_the_built_for(read, sample):
    facts = read(sample("xformers_info.txt"))
    assert facts.distribution("xformers").version == "0.0.35"
    assert facts.distribution("torch").version == "2.3.1+cu121"
    assert facts.gpus.value[0].name == "Tesla T4"
    assert facts.gpus.value[0].compute_capability == ComputeCapability(7, 5)


def test_nvidia_smi(read, sample):
    facts = read(sample("h200-nvidia_smi.txt"))
    gpu = facts.gpus.value[0]
    assert (gpu.name, gpu.memory_total_bytes, gpu.persistence) == ("NVIDIA H200", 143771 * MIB, True)
    assert str(facts.driver.cuda.value) == "13.0"
    assert facts.driver.version.source == "nvidia-smi, line 3"


def test_nvidia_smi_since_610(read, sample):
    facts = read(sample("nvidia_smi_610.txt"))
    assert str(facts.driver.version.value) == "610.43.02"
    assert str(facts.driver.cuda.value) == "13.3"
    assert facts.gpus.value[0].name == "NVIDIA B200"


def test_nvidia_smi_narrow_keeps_only_names_that_tell_the_model(read, sample):
    facts = read(sample("nvidia_smi_460.txt"))
    assert [gpu.name for gpu in facts.gpus.value] == [None, "Tesla V100-SXM2"]
    assert str(facts.driver.cuda.value) == "11.2"


@pytest.mark.parametrize(
    "printed", ["NVIDIA ...", "GeForce ...", "NVIDIA GeForce ...", "NVIDIA Graphics Device"]
)
def test_nvidia_smi_s_name_of_no_model_is_no_name(read, sample, printed):
    facts = read(sample("nvidia_smi_460.txt").replace("GeForce GTX 165...", printed.ljust(18)))
    assert [gpu.name for gpu in facts.gpus.value] == [None, "Tesla V100-SXM2"]


def test_nvidia_smi_quoted_and_squeezed(read, sample):
    facts = read(sample("nvidia_smi_quoted.txt"))
    assert str(facts.driver.version.value) == "535.104.05"
    assert facts.gpus.value[0].name == "NVIDIA GeForce RTX 3090"
    assert facts.gpus.value[0].memory_total_bytes == 24576 * MIB


def test_nvidia_smi_that_failed(read):
    facts = read("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.")
    assert "failed" in facts.driver.nvml.value


def test_nvidia_smi_q(read, sample):
    facts = read(sample("h200-nvidia_smi_q.txt"))
    gpu = facts.gpus.value[0]
    assert gpu.pci_id == "10de:2335"
    assert (gpu.ecc, gpu.mig, gpu.pcie_generation, gpu.pcie_width_max) == ("enabled", "disabled", 5, 16)
    assert (gpu.remapped_rows_pending, gpu.ecc_uncorrected) == (False, 0)


def test_query_gpu(read, sample):
    facts = read(sample("query_gpu.csv"))
    assert [str(gpu.compute_capability) for gpu in facts.gpus.value] == ["8.9", "8.9"]
    assert facts.driver.version.source == "nvidia-smi --query-gpu, line 2"


def test_nvidia_smi_L(read):
    facts = read("GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-aa)\nGPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-bb)\n")
    assert [gpu.uuid for gpu in facts.gpus.value] == ["GPU-aa", "GPU-bb"]


def test_nvcc(read):
    facts = read("Cuda compilation tools, release 12.1, V12.1.105")
    assert [(str(t.version), t.path, t.active) for t in facts.toolkits.value] == [("12.1", "nvcc", True)]


def test_python_prompt(read):
    facts = read(
        ">>> torch.__version__\n'2.1.0+cu121'\n>>> torch.version.cuda\n'12.1'\n"
        ">>> torch.cuda.get_device_capability()\n(7, 5)\n>>> torch.cuda.get_arch_list()\n['sm_50', 'sm_90']\n"
    )
    assert facts.distribution("torch").version == "2.1.0+cu121"
    assert facts.environment.builds["torch"]["arch_list"] == ["sm_50", "sm_90"]
    assert str(facts.gpus.value[0].compute_capability) == "7.5"


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("FROM nvcr.io/nvidia/pytorch:23.12-py3 AS base", "nvcr.io/nvidia/pytorch:23.12-py3"),
        ("container: nvcr pytorch 23.12", "nvcr.io/nvidia/pytorch:23.12-py3"),
        ("docker image: nvidia/cuda:12.8.1-devel-ubuntu22.04", "nvidia/cuda:12.8.1-devel-ubuntu22.04"),
        ("container: kubernetes", "kubernetes"),
    ],
)
def test_container(read, image, expected):
    assert read(image).host.container.value == expected


def test_docker_run(read):
    facts = read("docker run --gpus all --shm-size=1g -it vllm/vllm-openai:v0.8.5 --max-num-seqs 64")
    assert facts.distribution("vllm").version == "0.8.5"
    assert facts.host.shm_bytes.value == GIB
    assert facts.setting("max_num_seqs").value == "64"


def test_a_count_beside_one_gpu(read):
    facts = read("- GPU type: NVIDIA A100-SXM4-80GB\n- GPU number: 8\n- GPU memory: 79.25GB\n")
    assert [gpu.name for gpu in facts.gpus.value] == ["NVIDIA A100-SXM4-80GB"] * 8


def test_an_accepted_cuda_mismatch_is_no_symptom(read):
    facts = read(
        "Installed CUDA version 12.2 does not match the version torch was compiled with 12.1 but since "
        "the APIs are compatible, accepting this combination\nDeepSpeed info: "
        "version=0.14.0, git-hash=unknown\n"
    )
    assert not facts.symptoms
    assert facts.distribution("deepspeed").version == "0.14.0"
