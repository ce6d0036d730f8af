from __future__ import annotations

from envdoctor.probes.variables import select_variables


def test_what_matters_is_kept_and_the_rest_is_not():
    kept, dropped = select_variables(
        {
            "CUDA_VISIBLE_DEVICES": "GPU-1,MIG-2",
            "NCCL_DEBUG": "INFO",
            "HF_HOME": "/data",
            "EDITOR": "vi",
            "PS1": "$",
        }
    )
    assert kept == {"CUDA_VISIBLE_DEVICES": "GPU-1,MIG-2", "HF_HOME": "/data", "NCCL_DEBUG": "INFO"}
    assert dropped == ()


def test_names_that_look_secret_are_never_read():
    class Unreadable(dict):
        def __getitem__(self, name):
            raise AssertionError(f"{name} was read")

    environ = Unreadable(HF_TOKEN="x", VLLM_API_KEY="x", HUGGINGFACE_PASSWORD="x", NCCL_SECRET="x")
    assert select_variables(environ) == ({}, ())


def test_values_that_look_secret_are_dropped_and_named():
    kept, dropped = select_variables(
        {
            "HF_ENDPOINT": "https://user:pw@mirror.example",
            "VLLM_HOST": "hf_" + "a" * 34,
            "OMP_NUM_THREADS": "4",
        }
    )
    assert kept == {"OMP_NUM_THREADS": "4"}
    assert dropped == ("HF_ENDPOINT", "VLLM_HOST")


def test_tokenizers_parallelism_is_no_token():
    assert select_variables({"TOKENIZERS_PARALLELISM": "false"})[0] == {"TOKENIZERS_PARALLELISM": "false"}


def test_long_values_are_cut():
    assert len(select_variables({"LD_LIBRARY_PATH": "/x:" * 9999})[0]["LD_LIBRARY_PATH"]) == 4096
