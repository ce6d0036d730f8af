"""Posts as they are: cut off, quoted, told in words; what they name and what follows from it."""

from __future__ import annotations

import pytest

from envdoctor.diagnosis import diagnose_facts
from envdoctor.findings import Certainty, Finding, Severity
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste


def found_in(text: str) -> dict[str, Finding]:
    return {f.id: f for f in diagnose_facts(parse_paste(text, "", load_matrix().lexicon)).findings}


def test_a_message_that_is_cut_off_is_whole_where_the_title_has_it() -> None:
    text = "# Chapter 1: 'DynamicCache' object has no attribute 'get_max_length'\n\nIt fails:\n\n{}"
    cut = "AttributeError: 'DynamicCache' object has no attribute '"
    assert found_in(text.format(cut))["ATTRIBUTE-MISSING"].remedies[0].pins == {"transformers": "==4.48.3"}


def test_a_loggers_next_line_is_no_part_of_a_message() -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/v/lib/python3.11/site-packages/transformers/trainer.py", line 547, in __init__\n'
        "    raise ValueError(\n"
        "ValueError: The train_dataset does not implement __len__, max_steps has to be specified.\n"
        "[2025-06-17 18:01:54,007] torch.distributed.elastic.multiprocessing.api: [ERROR] "
        "failed (exitcode: 1)\n"
        "Traceback (most recent call last):\n"
        '  File "/v/lib/python3.11/site-packages/torch/distributed/launcher/api.py", line 264, in launch\n'
        "    raise ChildFailedError(\n"
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    )
    assert next(iter(found_in(text))) == "MAX-STEPS-STREAMING"


def test_an_error_line_that_a_note_knows_as_harmless_is_none() -> None:
    said = "A matching Triton is not available, some optimizations will not be enabled."
    text = f"{said} Error caught was: No module named 'triton'\n"
    assert [f.severity for f in found_in(text).values()] == [Severity.NOTE]


def test_a_warning_that_is_judged_is_not_told_as_strange() -> None:
    said = "The NVIDIA driver on your system is too old (found version 11000). Please update your GPU driver"
    found = found_in(
        f"# fails: {said} by downloading it\n\nUserWarning: CUDA initialization: {said} by hand\n"
    )
    assert "WARNING-STRANGE" not in found


def test_the_title_and_the_error_line_of_one_symbol_are_one_finding() -> None:
    symbol = "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
    path = "/v/lib/python3.12/site-packages/{}"
    text = f"# undefined symbol: {symbol}\ntorch: 2.6.0\nImportError: {path}: undefined symbol: {symbol}\n"
    assert set(found_in(text.format("flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so"))) == {
        "ABI-FLASH-ATTN"
    }
    named = found_in(text.format("gizmo/_C.so"))["ABI-EXTENSION"]
    assert named.summary.startswith("gizmo was built for another torch")


def test_what_a_whole_message_asks_is_offered_for_its_beginning() -> None:
    beginning = "ValueError: You passed along `num_labels=3` with an incompatible id to label map"
    assert found_in(f"transformers: 4.40.0\n{beginning}\n")


def test_a_warning_of_xformers_gives_way_to_the_error_that_ended_the_run() -> None:
    warned = (
        "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:\n"
        "    PyTorch 2.3.0+cu121 with CUDA 1201 (you have 2.3.0+cu121)\n"
        "    Python  3.10.11 (you have 3.11.6)\n"
    )
    error = "ImportError: cannot import name 'measure_flops' from 'lightning_fabric.utilities'\n"
    assert found_in(warned)["XFORMERS-TORCH"].certainty is Certainty.CERTAIN
    assert found_in(warned + error)["XFORMERS-TORCH"].certainty is not Certainty.CERTAIN


def test_a_torch_for_a_toolkit_is_one_that_pytorch_has() -> None:
    line = "Installed CUDA version 12.2 does not match the version torch was compiled with 11.7, unable to"
    told = found_in(
        f"deepspeed: 0.12.0\n{line} compile cuda/cpp extensions without a matching cuda version.\n"
    )
    commands = [command for remedy in told["DS-CUDA-MISMATCH"].remedies for command in remedy.commands]
    assert any("whl/cu121" in command for command in commands)


def test_a_mac_is_not_asked_for_its_glibc() -> None:
    error = "Could not find a version that satisfies the requirement vllm (from versions: none)"
    text = f"OS: macOS 14.5 (arm64)\nERROR: {error}\n"
    told = " ".join(remedy.text for remedy in found_in(text)["INDEX-OFFERS-NONE"].remedies)
    assert "glibc" not in told


def test_a_change_of_releases_tells_of_no_release_that_is_there() -> None:
    text = "- `torch 2.10.0+cu130` → `torch 2.9.1` (no CUDA)\n- `torchvision 0.25.0` → `torchvision 0.24.1`\n"
    facts = parse_paste(
        f"It overwrites the CUDA torch with a CPU version:\n\n{text}", "", load_matrix().lexicon
    )
    assert not facts.environment.distributions
    assert "TORCH-REPLACED" in {f.id for f in diagnose_facts(facts).findings}


PATHS = ("model_epoch40_50w", "./out/checkpoint-10", "/data/models/qwen/7b")


@pytest.mark.parametrize("path", PATHS)
def test_a_path_that_is_no_repository_is_a_folder_that_is_not_there(path: str) -> None:
    line = f"OSError: {path} is not a local folder and is not a valid model identifier listed on the Hub\n"
    found = found_in(line)
    assert next(iter(found)) == "HUB-NO-FOLDER"
    assert found["HUB-ACCESS"].consequence_of == "HUB-NO-FOLDER"
    assert "HUB-NO-FOLDER" not in found_in(line.replace(path, "meta-llama/Llama-3"))


SAID = {
    "Found cuDNN version 8600, but JAX was built against version 8906, which is newer.": "JAX-CUDNN-OLDER",
    "Mismatched PJRT plugin PJRT API version (0.54) and framework PJRT API version 0.51).": "PJRT-VERSION",
    "ValueError: Your currently installed version of Keras is Keras 3, but this is not yet "
    "supported i": "KERAS-3",
    "OSError: /v/bitsandbytes/libbitsandbytes_cuda116.dll: invalid ELF header": "ELF-WINDOWS-DLL",
    "OSError: /v/gizmo/wrapper_compiled.so: invalid ELF header": "ELF-INVALID",
    "RuntimeError: Your system has an unsupported version of sqlite3. Chroma requires sqlite3 "
    ">= 3.35.0.": "SQLITE-OLD",
    "sqlite3.OperationalError: disk I/O error": "SQLITE-IO",
    "docker: failed to register layer: write /usr/local/cuda/bin/nvdisasm: no space left on "
    "device": "DOCKER-DISK-FULL",
    "_pickle.UnpicklingError: invalid load key, 'W'.": "PICKLE-OF-OUTPUT",
    "_pickle.UnpicklingError: invalid load key, 'v'.": "PICKLE-LOAD-KEY",
    "ModuleNotFoundError: No module named 'transformers_modules.microsoft.Phi-3'": "REMOTE-CODE-MODULE",
    "ModuleNotFoundError: No module named 'langchain.text_splitter'": "LANGCHAIN-1-MODULES",
    "Could not download 'pyannote/speaker-diarization-3.1' pipeline.": "PYANNOTE-GATED",
    "unknown (magic, version) combination: 46554747, 00000003; is this really a GGML file": "GGUF-OLD-READER",
    "unknown (magic, version) combination: 67676a74, 00000003; is this really a GGML file": "GGML-OLD-FORMAT",
    "RuntimeError: device >= 0 && device < num_gpus INTERNAL ASSERT FAILED at "
    "CUDAContext.cpp": "DEVICE-COUNT-ASSERT",
    "Unable to load optimizer from checkpoint x, exiting. Specify --no-load-rng or "
    "--finetune": "MEGATRON-LOAD",
    "EE1002: Stream synchronize timeout, npuSynchronizeDevice error code is 507046": "NPU-TIMEOUT",
    "MPS backend out of memory (MPS allocated: 0 bytes, other allocations: 0 bytes, max allowed: 7.93 GB)."
    " Tried to allocate 256 bytes on private pool.": "MPS-NO-DEVICE",
    "RX 9070 XT: HIP error: invalid device function": "ROCM-RDNA4",
    "In WSL: Could not load library libcudnn_cnn_infer.so.8.": "CUDNN-WSL",
    "It appears blas=0 and the GPU is not used with llama-cpp-python.": "LLAMA-CPP-CPU-BUILD",
    "# Exited with code 137": "HOST-OOM-KILLED-GENERAL",
    "# GPU has fallen off of the bus": "GPU-FELL-OFF-BUS",
    "The training crashes because it cannot access `/.triton` in OpenShift.": "HOST-CACHE-REFUSED",
    "CUDA SETUP: CUDA detection failed! Possible reasons:": "BNB-SETUP-FAILED",
    "PermissionError: [Errno 13] Permission denied: 'Qwen3-0.6B-SFT'": "PERMISSION-PATH",
    "FileNotFoundError: [Errno 2] No such file or directory: 'ffmpeg'": "FFMPEG-ABSENT",
    "FileNotFoundError: [Errno 2] No such file or directory: 'cmake'": "PROGRAM-ABSENT",
    "RequestError(Status(403, Response[status: 403, url: https://huggingface.co/x/y]))": "HUB-ACCESS",
    "The setup fails: nvcc was not found on this machine": "BUILD-NVCC-ABSENT",
    "ValueError: rope_scaling must contain keys {'factor', 'type'}": "MLX-ROPE-SCALING",
    "LoRA training of SDXL is painfully slow and the VRAM is full all the time": "SLOW-SPILL",
    "My Jetson: I checked `torch.cuda.is_available`, it returned false.": "JETSON-TORCH-CPU",
}


@pytest.mark.parametrize(("line", "identity"), SAID.items(), ids=lambda one: str(one)[:40])
def test_a_line_leads_to_what_it_means(line: str, identity: str) -> None:
    assert next(iter(found_in(f"{line}\n"))) == identity


def test_a_log_of_an_old_format_that_loads_is_no_error() -> None:
    log = (
        "llama_model_load_internal: format     = ggjt v3 (latest)\nllama_model_load_internal: n_ctx = 1024\n"
    )
    assert "GGML-OLD-FORMAT" not in found_in(log)


def test_rocms_torch_is_asked_for_its_architectures_by_torch_cuda() -> None:
    found = found_in(
        "torch: 2.5.1+rocm6.2\nHIP error: no kernel image is available for execution on the device\n"
    )
    assert any("get_arch_list" in c for r in found["ROCM-NO-KERNEL"].remedies for c in r.commands)


def test_whose_memory_it_was_is_told_where_torch_names_no_process_its_own() -> None:
    text = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 114.00 MiB. GPU 0 has a total capacity"
        " of 23.64 GiB of which 36.12 MiB is free. Process 3051286 has 19.04 GiB memory in use. Process"
        " 3429391 has 4.56 GiB memory in use. Of the allocated memory 4.16 GiB is allocated by PyTorch\n"
    )
    assert "held 19.0 of 23.6 GiB" in found_in(text)["OOM-NEIGHBOUR"].summary


def test_who_generates_images_is_not_told_how_to_train() -> None:
    found = found_in("ComfyUI, SDXL with ControlNet\ntorch.OutOfMemoryError: Allocation on device 0\n")
    assert "lower resolution" in found["OOM-GENERATION"].remedies[0].text
    assert "OOM-GENERATION" not in found_in("SFTTrainer\ntorch.OutOfMemoryError: Allocation on device 0\n")


def test_a_word_for_the_visible_cards_hides_them() -> None:
    text = "environment:\n  CUDA_VISIBLE_DEVICES: all\nRuntimeError: No CUDA GPUs are available\n"
    found = found_in(text)
    assert next(iter(found)) == "CUDA-VISIBLE-WORD"
    assert found_in(text.replace("CUDA_V", "NVIDIA_V")).keys() == {"CUDA-NO-GPUS"}


RUN = """\
model_name_or_path: Qwen/Qwen2.5-7B
finetuning_type: lora
# quantization_bit: 4
cutoff_len: 8192
per_device_train_batch_size: 8
"""


def test_a_key_that_is_commented_out_is_no_setting() -> None:
    facts = parse_paste(RUN, "", load_matrix().lexicon)
    assert facts.setting("quant") is None


def test_a_run_of_which_other_trouble_is_told_has_shorter_rows() -> None:
    text = f"GPU: NVIDIA A100-SXM4-80GB\n\n```yaml\n{RUN}```\n"
    assert found_in(text)["MEM-RUN"].severity is Severity.ERROR
    told = f"# After the training the model repeats its output again and again\n\n{text}"
    assert found_in(told)["MEM-RUN"].severity is Severity.WARNING
    ran_out = f"{told}\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    assert found_in(ran_out)["MEM-RUN"].severity is Severity.ERROR


def test_a_run_that_is_refused_is_not_sized() -> None:
    full = RUN.replace("lora", "full").replace("# quant", "quant")
    text = f"GPU: NVIDIA GeForce RTX 4090\n\n```yaml\n{full}```\n"
    assert "MEM-RUN" not in found_in(text)
    assert "MEM-RUN" in found_in(text.replace("quantization_bit: 4", ""))


@pytest.mark.parametrize("switch", ["use_galore", "use_apollo", "use_badam"])
def test_an_optimizer_of_few_states_is_not_sized_as_one_of_two_a_weight(switch: str) -> None:
    full = RUN.replace("lora", "full").replace("8192", "1024").replace("size: 8", "size: 1")
    text = f"GPU: NVIDIA A100-SXM4-80GB\n\n```yaml\n{full}pure_bf16: true\noptim: adamw_torch\n```\n"
    text = text.replace("Qwen2.5-7B", "Qwen2.5-14B")
    assert "MEM-RUN" in found_in(text)
    assert "MEM-RUN" not in found_in(text.replace("pure", f"{switch}: true\npure"))


def test_a_pre_release_whose_requirements_are_not_on_record_is_named() -> None:
    table = (
        "$ pip list\nPackage       Version\n------------- -------\npydantic      {}\npydantic-core 2.33.0\n"
    )
    found = found_in(table.format("2.6.0b1"))["PRE-RELEASE-UNKNOWN"]
    assert "pydantic 2.6.0b1" in found.summary
    assert found.severity is Severity.NOTE
    assert "PRE-RELEASE-UNKNOWN" not in found_in(table.format("2.11.0"))
