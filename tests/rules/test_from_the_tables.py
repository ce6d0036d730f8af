"""What the releases' own interfaces tell, stands once: no row beside it that says otherwise."""

from __future__ import annotations

import pytest

from envdoctor.diagnosis import diagnose_facts
from envdoctor.findings import Finding
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste


def found(text: str) -> dict[str, Finding]:
    matrix = load_matrix()
    return {one.id: one for one in diagnose_facts(parse_paste(text, "", matrix.lexicon), matrix).findings}


def test_a_name_that_moved_is_told_with_the_module_it_is_in() -> None:
    remedies = found("ImportError: cannot import name 'ORPOTrainer' from 'trl'\n")[
        "INTERFACE-MISSING"
    ].remedies
    assert any("from trl.experimental.orpo import ORPOTrainer" in remedy.text for remedy in remedies)


@pytest.mark.parametrize("release", ["4.46.0", "4.50.3"])
def test_what_a_release_still_has_is_not_said_to_be_gone_from_it(release: str) -> None:
    line = "TypeError: TrainingArguments.__init__() got an unexpected keyword argument 'evaluation_strategy'"
    answers = found(f"transformers: {release}\n{line}\n")
    assert not any(one.certainty.value == "certain" for one in answers.values() if one.explains)


def test_without_a_release_both_sides_are_left_open() -> None:
    line = "TypeError: LlamaDecoderLayer.forward() got an unexpected keyword argument 'cache_position'\n"
    assert found(line)["INTERFACE-MISSING"].summary.endswith(", or older")


def test_the_library_that_asks_is_not_uninstalled_where_a_newer_release_has_the_name() -> None:
    line = "ImportError: cannot import name 'split_torch_state_dict_into_shards' from 'huggingface_hub'\n"
    commands = [c for remedy in found(line)["INTERFACE-MISSING"].remedies for c in remedy.commands]
    assert not any("uninstall" in command for command in commands)


def test_a_half_made_torchvision_is_a_mismatch_and_no_old_release() -> None:
    line = "AttributeError: partially initialized module 'torchvision' has no attribute 'extension'\n"
    assert next(iter(found(line))) == "TORCHVISION-EXTENSION"
    assert "INTERFACE-MISSING" not in found(line)


def test_a_library_that_needs_a_newer_glibc_is_not_a_missing_one() -> None:
    line = "version `GLIBC_2.34' not found (required by /x/bitsandbytes/libbitsandbytes_cuda121.so)\n"
    assert "GLIBC-OLD" in found(line)
    assert "BNB-BINARY" not in found(line)


def test_the_drivers_library_without_its_number_proves_no_missing_driver() -> None:
    line = (
        "Could not load library libcudnn_cnn_infer.so.8. Error: libcuda.so: cannot open shared object file\n"
    )
    assert found(line)["LIB-CUDA-NAME"].certainty.value == "likely"
    assert "DRIVER-WSL-LIBCUDA-MISSING" in found(f"{line}(WSL2)\n")


@pytest.mark.parametrize(
    ("module", "package"),
    [("awq_ext", "autoawq-kernels"), ("selective_scan_cuda", "mamba-ssm"), ("autogptq_cuda_64", "auto-gptq")],
)
def test_a_compiled_extension_is_told_with_its_package(module: str, package: str) -> None:
    told = found(f"ModuleNotFoundError: No module named '{module}'\n")["MODULE-MISSING"]
    assert f"it comes with {package} (a compiled extension" in told.summary


@pytest.mark.parametrize(
    ("line", "identity", "pins"),
    [
        (
            "Found an incompatible version of auto-gptq. Found version 0.4.2, but only version above 0.5.0"
            " are supported",
            "FOUND-INCOMPATIBLE",
            {"auto-gptq": ">=0.5.1"},
        ),
        (
            "ERROR: Package 'trl' requires a different Python: 3.8.17 not in '>=3.9'",
            "PIP-PYTHON-RANGE",
            {"python": ">=3.9"},
        ),
        ("1 validation error for DeepSpeedZeroConfig", "DS-CONFIG-TYPES", {"transformers": ">=4.46.3"}),
        ("RuntimeError: cublasLt ran into an error!", "BNB-INT8-CUBLASLT", {"bitsandbytes": ">=0.45.5"}),
    ],
)
def test_the_first_remedy_has_the_releases_that_mend_it(
    line: str, identity: str, pins: dict[str, str]
) -> None:
    assert found(f"{line}\n")[identity].remedies[0].pins == pins


def test_a_server_that_runs_out_gets_no_advice_for_training() -> None:
    log = "INFO 06-30 18:37:30 model_runner.py:160] Loading model weights took 17.9828 GB\n"
    answers = found(f"{log}torch.cuda.OutOfMemoryError: CUDA out of memory.\n")
    assert "OOM-IN-SERVER" in answers
    assert "OOM-GENERAL" not in answers


def test_an_extension_that_is_not_there_was_not_built() -> None:
    path = "/x/.cache/torch_extensions/py310_cu117/fused_adam/fused_adam.so"
    line = f"ImportError: {path}: cannot open shared object file\n"
    assert found(line)["EXTENSION-NOT-BUILT"].certainty.value == "likely"


def test_a_model_that_lies_elsewhere_is_not_wrapped() -> None:
    line = "DistributedDataParallel device_ids and output_device arguments only work with single-device"
    whole = f"{line} modules, but got device_ids [0], and module parameters {{device(type='cpu')}}.\n"
    assert "(device(type='cpu'))" in found(whole)["DDP-DEVICE-IDS"].summary


def test_a_line_that_lists_a_run_is_read_to_its_end() -> None:
    run = "gpu: 4x RTX 3090\nmodel: Llama-2-13b\nmethod: full fine-tuning, DeepSpeed ZeRO-3\n\n"
    told = found(f"{run}CUDA out of memory\n")
    assert "MEM-WEIGHTS" not in told
    assert "MEM-FULL-TRAINING" in told


def test_in_wsl_no_kernel_module_is_built() -> None:
    line = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
    assert "DRIVER-SMI-FAILED" in found(line)
    assert next(iter(found(f"WSL2, Ubuntu 22.04\n{line}"))) == "DRIVER-SMI-FAILED-WSL"


def test_a_function_in_a_methods_place_is_answered_by_the_method() -> None:
    line = "TypeError: _unsloth_get_batch_samples() takes 3 positional arguments but 4 were given\n"
    assert "transformers" in found(f"transformers 4.50.0\n{line}")["INTERFACE-MISSING"].remedies[0].pins


def test_a_library_that_asks_for_what_its_own_class_has_met_another_class_of_that_name() -> None:
    frame = '  File "/x/site-packages/transformers/utils/notebook.py", line 295, in on_train_begin\n'
    frame += "    args.eval_strategy\n"
    line = "AttributeError: 'TrainingArguments' object has no attribute 'eval_strategy'\n"
    told = found(f"transformers: 4.41.0\nTraceback (most recent call last):\n{frame}{line}")[
        "INTERFACE-NAMESAKE"
    ]
    assert told.remedies[0].pins == {"transformers": "==4.40.2"}
    untold = found(f"Traceback (most recent call last):\n{frame}{line}")["INTERFACE-NAMESAKE"]
    assert untold.remedies[0].pins == {"transformers": "==4.40.2"}


def test_no_flash_attn_whose_wheel_is_of_the_other_abi_is_advised() -> None:
    symbol = "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
    text = f"torch 2.6.0+cu124\nflash-attn 2.8.2\nflash_attn_2_cuda.so: undefined symbol: {symbol}\n"
    assert found(text)["ABI-FLASH-ATTN"].remedies[0].pins == {"flash-attn": ">=2.7.4,<=2.7.4.post1"}


@pytest.mark.parametrize(
    ("text", "identity"),
    [
        ("bitsandbytes 0.45.3\nversion `GLIBCXX_3.4.32' not found\n", "GLIBCXX-BITSANDBYTES"),
        ("cpu_adam cuda is missing or is incompatible with installed torch\n", "DS-OP-INCOMPATIBLE"),
        (
            "WSL2\nreturn tensor.pin_memory()\nRuntimeError: CUDA error: out of memory\n",
            "OOM-PINNED-WSL",
        ),
        (
            "accelerate launch train_dreambooth_sd3.py\ntorch.cuda.OutOfMemoryError: CUDA out of memory.\n",
            "OOM-DIFFUSERS-TRAINING",
        ),
        ("AttributeError: 'Catcher' object has no attribute 'attention_type'\n", "ATTRIBUTE-MISSING"),
        ("Uninstalling torch-2.1.0 ... Installing torch-2.0.1\n", "PIP-REPLACES-TORCH"),
        ("function 'cdequantize_blockwise_fp32' not found\n", "BNB-FUNCTION"),
        ("exits with return code = -7\n", "EXIT-BUS-ERROR"),
        ("WSL2\nLoading model ...\nKilled\n", "HOST-OOM-WSL"),
        ("deepspeed 0.9.5\nzero_hpz_partition_size\nextra fields not permitted\n", "DS-ZEROPP-KEYS"),
        ("bitsandbytes 0.45.3\nversion `GLIBC_2.34' not found\n", "GLIBC-BITSANDBYTES"),
        (
            "transformers 4.48\ngptqmodel 1.7\nImportError: Loading a GPTQ quantized model requires the"
            " auto-gptq library (`pip install auto-gptq`)\n",
            "GPTQMODEL-TRANSFORMERS-OLD",
        ),
        (
            "[sgl_kernel] CRITICAL: Could not load any common_ops library!\n"
            "ImportError: libnvrtc.so.12: cannot open shared object file\n",
            "SGL-KERNEL-CUDA",
        ),
    ],
)
def test_the_closest_cause_comes_first(text: str, identity: str) -> None:
    assert next(iter(found(text))) == identity


def test_wsl_alone_is_no_error() -> None:
    assert not any("WSL" in identity for identity in found("WSL2, Ubuntu 22.04, RTX 3090, driver 551.23\n"))


def test_a_companion_of_torch_is_foreseen_in_the_variant_that_is_asked_for() -> None:
    error = "OSError: torchaudio/lib/libtorchaudio.abi3.so: undefined symbol: torch_dtype_float4_e2m1fn_x2\n"
    told = found(f"torch 2.10.0+cu130\ntorchaudio 2.11.0\n{error}")["ABI-TORCHAUDIO"]
    assert told.remedies[0].pins == {"torchaudio": "==2.10.0"}


def test_what_follows_is_brought_to_what_is_pinned() -> None:
    line = "flashinfer-cubin version (0.6.0) does not match flashinfer version (0.5.3).\n"
    assert found(line)["FLASHINFER-PARTS"].remedies[0].pins == {"flashinfer-cubin": "==0.5.3"}


def test_a_sharded_run_is_not_told_to_shard() -> None:
    run = "8x A100 80GB\ntorchrun --nproc_per_node 8 tuning.py --enable_fsdp --model_name Llama-2-70b\n"
    told = found(f"{run}CUDA out of memory\n")
    assert not {"MEM-WEIGHTS", "OOM-DATA-PARALLEL"} & set(told)


@pytest.mark.parametrize(
    ("text", "certainty"),
    [
        ("torch 1.12.1\nRTX 3090\n", "likely"),
        ("torch 1.12.1+cu102\nRTX 3090\n", "certain"),
        ("torch 2.6.0\nRTX 5090\n", "certain"),
    ],
)
def test_what_one_build_of_a_release_lacks_is_certain_only_of_that_build(text: str, certainty: str) -> None:
    assert found(text)["TORCH-ARCH"].certainty.value == certainty


def test_what_accounted_for_the_end_and_was_outlived_leaves_it_unexplained() -> None:
    outlived = (
        "ERROR 06-13 20:58:45 [fa_utils.py:171] Cannot use FA version 2 is not supported due to FA2 is only"
    )
    went_on = "INFO 06-13 20:59:45 [cuda.py:234] Using FLASHINFER attention backend.\n"
    frame = '  File "/x/site-packages/flashinfer/prefill.py", line 2480, in run\n    self.paged_run(*args)\n'
    text = f"{outlived} supported on devices with compute capability >= 8\n{went_on}"
    text += f"Traceback (most recent call last):\n{frame}"
    assert any(one.severity.value == "error" for one in found(text).values())


@pytest.mark.parametrize(
    ("text", "identity"),
    [
        ("slurm_script: line 30: USER_: unbound variable\n", "SHELL-UNBOUND"),
        ("# Is `GLIBC_2.38` a hard requirement?\n\nI am on Ubuntu 22.\n", "GLIBC-OLD"),
    ],
)
def test_no_text_that_tells_of_trouble_is_green(text: str, identity: str) -> None:
    assert identity in found(text)


def test_a_build_that_waits_for_another_is_no_lock_left_behind() -> None:
    line = "INFO file_baton.py:48: waiting for baton release at /x/aiter/jit/build/lock_module_moe_sorting\n"
    assert "EXTENSION-LOCK" not in found(line)
    assert "EXTENSION-LOCK" in found('  File "/x/torch/utils/file_baton.py", line 43, in wait\n')


def test_a_package_that_is_there_is_not_gone() -> None:
    line = "Requirement already satisfied: pyairports in ./env/lib (from outlines) (2.1.1)\n"
    assert not any("PYAIRPORTS" in identity for identity in found(line))
    assert "PYAIRPORTS-GONE" in found("ERROR: No matching distribution found for pyairports\n")
