"""What messages say of themselves, and the conditions behind them, in plain words."""

from __future__ import annotations

import pytest

from envdoctor.findings import Certainty
from tests.rules.test_generations import SITE, judged

ID = "SAID-BY-MESSAGE"


def raised(message: str, package: str = "somewhere", listed: str = "") -> str:
    """Return a traceback that ends in a message of a package's own."""
    return (
        f"{listed}\nTraceback (most recent call last):\n"
        f'  File "{SITE}/{package}/engine.py", line 17, in start\n    check(it)\n{message}\n'
    )


SAID = [
    (
        "ImportError: frobnix is not installed. Run `pip install frobnix`.",
        "needs frobnix",
        "pip install frobnix",
    ),
    ("ValueError: Marlin kernels need sm_80 or newer", "compute capability 8.0", "another attention backend"),
    ("ValueError: The fused path is for Hopper only and needs Hopper", "kernels for Hopper", "a Hopper card"),
    ("RuntimeError: thing was not compiled with NCCL", "made without NCCL", "that has NCCL"),
    (
        "AssertionError: num_heads (14) must be divisible by tp_size (4)",
        "num_heads is no multiple of tp_size (4)",
        "What divides 14: 1, 2, 7, 14.",
    ),
    (
        "ValueError: the odd_dim must be divisible by 16, but got 10",
        "odd_dim is no multiple of 16",
        "next to it: 16",
    ),
    ("ValueError: batch size (64) exceeds the limit of 32", "batch size (64) is above", "Lower batch size"),
    (
        "ValueError: free blocks 3 is less than needed blocks 9",
        "below what is needed",
        "lower needed blocks 9",
    ),
    ("ValueError: warmup must be non-negative", "outside of what is allowed", "non-negative"),
    (
        "ValueError: Unknown scheme 'gptk'. Must be one of ['awq', 'gptq']",
        "gptk is none of the values that are taken here: awq, gptq",
        "Write gptq, if that is meant.",
    ),
    ("ValueError: max_len has been removed, use max_length instead", "of another time", "Use max_length"),
    ("ValueError: --packing is not compatible with --streaming", "do not go together", "Do without one"),
    (
        "ValueError: Cannot set both `a_file` and `b_file` at once, both given",
        "only one",
        "Take out a_file or b_file",
    ),
    ("ValueError: expected a list, got a dict", "given dict where it takes", "Give list"),
    (
        "ValueError: prefix_lm requires causal=False",
        "without what it goes with: causal=False",
        "do without prefix_lm",
    ),
    ("ValueError: cannot use overlap without a second stream", "overlap is asked for", "second stream"),
    (
        "NotImplementedError: FooFrob does not yet support the bar wheel",
        "cannot do what was asked",
        "Ask for what it has",
    ),
    (
        "ValueError: Unsupported layout zigzag",
        "nothing for what it was given: layout zigzag",
        "Ask for what it has",
    ),
    ("ValueError: `pad_id` must be set", "not given: pad_id", "Give it: pad_id"),
    ("FileExistsError: the folder out is already in use", "there from before", "Start a fresh process"),
    ("ValueError: shapes of q and k do not match", "must agree do not", "Make them agree"),
    ("ValueError: Mismatch between ranks and shards", "must agree do not", "Make them agree"),
    (
        "RuntimeError: worker timed out after 30s waiting for the scheduler",
        "did not come in time",
        "Look into the log",
    ),
]


@pytest.mark.parametrize(("message", "cause", "way"), SAID)
def test_a_wording_that_libraries_share_is_read_whoever_wrote_it(message: str, cause: str, way: str) -> None:
    found = judged(raised(message))[ID]
    assert found.certainty is not Certainty.CERTAIN
    assert cause in found.cause
    assert way in " ".join(f"{r.text} {' '.join(r.commands)}" for r in found.remedies)
    assert message.partition(": ")[2][:20] in found.summary


def test_what_is_asked_for_and_listed_was_not_seen_by_the_process() -> None:
    found = judged(
        raised("ImportError: the odd path needs help: `peft` is not installed", listed="peft==0.18.0")
    )[ID]
    assert "peft 0.18.0 is listed here all the same" in found.cause


def test_a_card_that_is_told_stands_beside_what_is_asked_of_it() -> None:
    found = judged(raised("ValueError: this needs sm_90", listed="GPU: NVIDIA L4"))[ID]
    assert ("gpu", "compute capability 8.9") in [(e.fact, e.value) for e in found.evidence]


@pytest.mark.parametrize(
    "message",
    [
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "ValueError: something odd happened over there",
    ],
)
def test_a_line_that_the_matrix_knows_or_that_says_nothing_is_not_read(message: str) -> None:
    assert ID not in judged(raised(message))


def test_a_condition_is_told_in_words_with_what_follows_from_it() -> None:
    found = judged(
        "ValueError: when `sp_seq_length_is_variable` is `False` `sp_seq_length` must be provided either"
        " through the constructor or the environment variable PARALLELISM_CONFIG_SP_SEQ_LENGTH"
    )["RAISED-BY-LIBRARY"]
    assert "It stops there because sp_seq_length_is_variable is off, empty or not set" in found.cause
    assert "the environment variable PARALLELISM_CONFIG_SP_SEQ_LENGTH is not set" in found.cause
    assert "Set sp_seq_length." in [remedy.text for remedy in found.remedies]


def test_another_package_s_words_are_not_those_of_the_library_that_has_them_too() -> None:
    found = judged(raised("NotImplementedError: This method is not implemented.", "lmdeploy"))
    assert "RAISED-BY-LIBRARY" not in found


GUARDS = [
    ("not is_peft_available()", "peft is not installed"),
    (
        "is_peft_available('0.15') is False and not is_torch_greater_or_equal('2.5')",
        "torch>=2.5 is not installed",
    ),
    (
        "version.parse(importlib.metadata.version('peft')) < version.parse('0.5')",
        "peft>=0.5 is not installed",
    ),
    ("torch.cuda.get_device_capability() < (8, 9)", "the card's compute capability is below 8.9"),
    ("not current_platform.has_device_capability(80)", "the card's compute capability is below 8.0"),
    ("not torch.cuda.is_available()", "torch sees no GPU"),
    ("self.a % self.b != 0", "a is no multiple of b"),
    ("'RANK' not in os.environ", "the environment variable RANK is not set"),
    ("len(items) > 3", "the number of items is above 3"),
    ("not os.path.exists(path)", "path does not exist"),
    ("x is None and not (y is not None)", "x is not set; y is not set"),
    ("mode not in ('a', 'b')", "mode is none of 'a', 'b'"),
    ("data.get('trl', {}).get('beta') != data['beta']", "trl.beta is not beta"),
    ("not isinstance(x, (list, tuple))", "x is no list or tuple"),
    ("ValueError is raised", "ValueError was raised there before"),
    ("hasattr(model, 'hf_device_map')", "model has hf_device_map"),
    ("not 0 <= x < 1", "0 <= x < 1 does not hold"),
    ("(missing := find())", "missing is on or set"),
    ("find_spec('peft') is None", "peft"),
    ("a or b", "a is on or set or b is on or set"),
    ("cut off …", ""),
]


@pytest.mark.parametrize(("guard", "words"), GUARDS)
def test_a_condition_s_terms_are_said(guard: str, words: str) -> None:
    from envdoctor.facts import Facts
    from envdoctor.matrix import load_matrix
    from envdoctor.pastes import parse_paste
    from envdoctor.rules.guards import said_of
    from envdoctor.rules.view import View

    matrix = load_matrix()
    facts: Facts = parse_paste("", "", matrix.lexicon)
    assert words in "; ".join(term.words for term in said_of(View(facts, matrix), guard, "a message"))


@pytest.mark.parametrize(
    ("guard", "listed", "words", "holds"),
    [
        ("version.parse(accelerate.__version__) < version.parse('0.26')", "accelerate==0.20.3",
         "accelerate is 0.20.3, not >=0.26", True),
        ("not is_accelerate_available('0.26.0')", "accelerate==1.2.0",
         "the process finds no accelerate>=0.26.0", False),
        ("is_torch_greater_or_equal('2.5')", "torch==2.4.0", "torch>=2.5 is installed", False),
        ("not is_torch_version('>=', '2.3.0')", "torch==2.1.2", "torch is 2.1.2, not >=2.3.0", True),
        ("torch.cuda.get_device_capability() < (9, 0)", "GPU: NVIDIA L4",
         "the card's compute capability is below 9.0", True),
        ("not is_torchao_available() or version.parse(importlib.metadata.version('torchao')) <"
         " version.parse('0.4.0')", "torchao==0.3.0", "torchao is 0.3.0, not >=0.4.0", True),
        ("is_peft_available()", "GPU: NVIDIA L4", "peft is installed", None),
        ("not torch.cuda.is_available()", "Is CUDA available: False", "torch sees no GPU", True),
        ("not is_torch_cuda_available()", "Is CUDA available: True", "torch sees no GPU", False),
        ("not torch.cuda.is_available()", "torch==2.6.0", "torch sees no GPU", None),
        ("torch.version.hip", "torch==2.6.0+rocm6.2", "torch.version.hip is on or set", True),
        ("not current_platform.is_cuda()", "torch==2.6.0+rocm6.2",
         "current_platform is not CUDA's", True),
        ("not torch.cuda.is_bf16_supported()", "GPU: Tesla T4",
         "torch.cuda.is_bf16_supported() does not hold", True),
        ("os.environ.get('VLLM_USE_V1') == '1'", "export VLLM_USE_V1=1",
         "the environment variable VLLM_USE_V1 is '1'", True),
        ("envs.VLLM_USE_V1 not in ('0', 'false')", "export VLLM_USE_V1=0",
         "the environment variable VLLM_USE_V1 is none of '0', 'false'", False),
        ("os.getenv('RANK') is None", "GPU: NVIDIA L4", "the environment variable RANK is not set", None),
        ("'HF_HOME' not in os.environ", "export HF_HOME=/a", "the environment variable HF_HOME is not set",
         False),
        ("model_config.dtype not in (torch.bfloat16, torch.float32)", "vllm serve x --dtype float16",
         "model_config.dtype is none of torch.bfloat16, torch.float32", True),
        ("args.bf16", "bf16: false\nfp16: true\nlearning_rate: 1e-4", "args.bf16 is on or set", None),
        ("config.max_model_len > 2048", "vllm serve x --max-model-len 4096",
         "config.max_model_len is above 2048", True),
        ("q.dtype == torch.float16", "vllm serve x --dtype float16", "q.dtype is torch.float16", None),
        ("sys.version_info >= (3, 12)", "Python version: 3.12.4", "sys.version_info is at least (3, 12)",
         True),
        ("not hasattr(torch._C, '_cuda_getDeviceCount')", "torch==2.6.0+cpu",
         "torch._C has no _cuda_getDeviceCount", True),
        ("sys.platform == 'win32'", "OS: Microsoft Windows 11", "sys.platform is 'win32'", True),
    ],
)  # fmt: skip
def test_the_facts_say_whether_a_condition_holds(guard: str, listed: str, words: str, holds: bool) -> None:
    from envdoctor.matrix import load_matrix
    from envdoctor.pastes import parse_paste
    from envdoctor.rules.guards import said_of
    from envdoctor.rules.view import View

    matrix = load_matrix()
    (said,) = said_of(View(parse_paste(listed, "", matrix.lexicon), matrix), guard, "a message")
    assert (said.words, said.holds) == (words, holds)


def test_a_library_that_speaks_is_there_whatever_part_of_it_is_not() -> None:
    from envdoctor.matrix import load_matrix
    from envdoctor.pastes import parse_paste
    from envdoctor.rules.guards import said_of
    from envdoctor.rules.view import View

    matrix = load_matrix()
    view = View(parse_paste("autoawq==0.2.2", "", matrix.lexicon), matrix)
    (said,) = said_of(view, "not AWQ_INSTALLED", "a message", library="autoawq")
    assert (said.words, said.holds) == ("awq is not there", None)


def test_where_a_condition_holds_the_releases_before_it_are_a_way_out() -> None:
    line = "RuntimeError: Building a device_mesh requires to have torch>=2.2.0"
    found = judged(raised(line, "accelerate", listed="torch==2.1.2\naccelerate==1.10.1"))["RAISED-BY-LIBRARY"]
    assert "It stops there because torch is 2.1.2, not >=2.2.0." in found.cause
    pins = [remedy.pins for remedy in found.remedies]
    assert {"torch": ">=2.2.0"} in pins
    assert {"accelerate": "<1.10"} in pins


ROWS = [
    ("RENDEZVOUS-CLOSED", "torch.distributed.elastic.rendezvous.api.RendezvousClosedError"),
    (
        "DTENSOR-MIXED",
        "RuntimeError: aten.mm.default: got mixed torch.Tensor and DTensor, need to convert all",
    ),
    (
        "DDP-NOTHING-TO-TRAIN",
        "RuntimeError: DistributedDataParallel is not needed when a module doesn't have any parameters that"
        " require a gradient.",
    ),
    ("OPTIMIZER-EMPTY", "ValueError: optimizer got an empty parameter list"),
    (
        "RECOMPILE-LIMIT-HIT",
        "torch._dynamo.exc.FailOnRecompileLimitHit: recompile_limit reached with fullgraph=True.",
    ),
    ("ARROW-OFFSET-OVERFLOW", "pyarrow.lib.ArrowInvalid: offset overflow while concatenating arrays"),
    ("DS-PARAM-INFLIGHT", "AssertionError: {'id': 786, 'status': 'INFLIGHT', 'numel': 38603520}"),
    ("DS-PARAM-INFLIGHT", "RuntimeError: still have inflight params [{'id': 723, 'status': 'AVAILABLE'}]"),
    ("RAY-GPUS-FEWER", "ValueError: Total available GPUs 0 is less than total desired GPUs 8"),
    (
        "LLAMACPP-TENSORS",
        "llama_model_load: error loading model: done_getting_tensors: wrong number of tensors",
    ),
    ("MLX-MODEL-TYPE", "ValueError: Model type qwen3_5 not supported."),
    ("CUTLASS-ERROR-INTERNAL", "RuntimeError: Error Internal"),
    (
        "SLURM-STEP-CPUS",
        "srun: error: Unable to create step for job 65: More processors requested than permitted",
    ),
    (
        "SLURM-NODE-CONFIG",
        "sbatch: error: Batch job submission failed: Requested node configuration is not available",
    ),
]


@pytest.mark.parametrize(("row", "line"), ROWS)
def test_what_runs_fail_of_is_known_by_its_line(row: str, line: str) -> None:
    assert row in judged(line)


def test_what_is_no_multiple_is_shown_with_its_remainder() -> None:
    found = judged(raised("AssertionError: num_heads (14) must be divisible by tp_size (4)"))[ID]
    assert [(one.fact, one.value) for one in found.evidence if one.source == "the message"] == [
        ("remainder", "14 = 3 x 4 + 2")
    ]
