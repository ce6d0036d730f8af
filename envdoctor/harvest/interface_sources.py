"""Which libraries' interfaces are read, from which release on, and how closely."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from envdoctor.matrix.interface_records import MODELS, PART


class Step(Enum):
    """Which releases are read: all, or the first (with `ENDS` the last, too) of each patch or minor.

    The newest is always read.
    """

    ALL = "all"
    PATCHES = "patches"
    ENDS = "ends"
    MINORS = "minors"


@dataclass(frozen=True, slots=True)
class Library:
    """A library to scan: the oldest release that matters and the files read (all when none is named)."""

    name: str
    since: str
    step: Step = Step.MINORS
    root: str = ""
    """The name that is imported."""
    members: tuple[str, ...] = ()
    """Patterns of paths; `*` stays within a folder, `**` does not."""
    named: tuple[str, ...] = ()
    """Patterns of paths of which only the names are read: others import from there, and little else."""
    defined: tuple[str, ...] = ()
    """Patterns of paths of whose classes is read what they define themselves."""
    part: str = ""
    """What is read, where a record of its own tells of it beside the library's."""
    inner: tuple[str, ...] = ()
    """Packages of whose insides no name is recorded: nobody else imports from them."""
    listed: bool = False
    """True where files that are not read tell by their `__all__` what the package above them exports."""

    def __post_init__(self) -> None:
        """The imported name is the distribution's where none is given."""
        object.__setattr__(self, "root", self.root or self.name.replace("-", "_"))

    @property
    def record(self) -> str:
        """What its record is called."""
        return f"{self.name}{PART}{self.part}" if self.part else self.name


ALL, PATCHES, ENDS = Step.ALL, Step.PATCHES, Step.ENDS
_TRANSFORMERS = (
    "transformers/*.py",
    *(f"transformers/{part}/**.py" for part in ("data", "generation", "integrations", "quantizers", "utils")),
    "transformers/pipelines/*.py",
    "transformers/models/*/__init__.py",
    *(f"transformers/models/{part}/*.py" for part in ("auto", "bert", "gpt2", "llama", "mistral", "qwen2")),
)
_MODELS = tuple(
    f"transformers/models/*/{part}_*.py"
    for part in ("configuration", "image_processing", "modeling", "processing", "tokenization")
)
_MODELLING = ("transformers/models/*/modeling_*.py",)
_BASES = tuple(
    f"transformers/{name}.py"
    for name in (
        *("modeling_utils", "modeling_layers", "integrations/peft", "utils/hub"),
        *("generation/__init__", "generation/utils"),
    )
)
_TORCH_INNER = (
    *(f"torch.{part}." for part in ("_inductor", "_dynamo", "_functorch", "_export", "_refs", "_prims")),
    *(f"torch.{part}." for part in ("_numpy", "_higher_order_ops", "_strobelight", "_subclasses", "_decomp")),
    *(
        "torch.testing.",
        "torch.fx.",
        "torch.onnx.",
        "torch.ao.",
        "torch.package.",
        "torch.jit.",
        "torch.masked.",
    ),
    *("torch.quantization.", "torch.sparse.", "torch.monitor.", "torch.contrib.", "torch.special."),
    *(
        "torch.distributed._shard",
        "torch.distributed.pipeline",
        "torch.distributed.rpc",
        "torch.utils.benchmark",
    ),
    *(
        "torch.nn.quantiz",
        "torch.nn.qat",
        "torch.nn.intrinsic",
        "torch.utils.model_dump",
        "torch.utils.hipify",
    ),
    *("torch.distributions.", "torch.fft.", "torch.futures.", "torch.profiler.", "torch.xpu.", "torch.mtia."),
    "torch.distributed.examples",
)
_VLLM = (
    *("vllm/*.py", "vllm/model_executor/*.py", "vllm/transformers_utils/*.py", "vllm/distributed/*.py"),
    *(
        f"vllm/{part}/**.py"
        for part in ("config", "engine", "entrypoints", "executor", "inputs", "multimodal")
    ),
    *(
        f"vllm/{part}/**.py"
        for part in ("platforms", "plugins", "reasoning", "tool_parsers", "usage", "utils")
    ),
    *(
        f"vllm/{part}/*.py"
        for part in ("lora", "logging_utils", "tokenizers", "renderers", "outputs", "worker")
    ),
    *(f"vllm/v1/{part}" for part in ("*.py", "engine/*.py", "executor/*.py", "metrics/*.py", "sample/*.py")),
)
"""Of vllm's files those that others import from: no models, layers and kernels."""
_SGLANG_INNER = (
    "sglang.test",
    "sglang.lang",
    "sglang.benchmark",
    "sglang.multimodal_gen",
    "sglang.srt.models.",
)
LIBRARIES = (
    Library("trl", "0.4", ALL),
    Library("peft", "0.2", ALL),
    Library("accelerate", "0.12", ENDS),
    Library("huggingface-hub", "0.8", ENDS),
    Library("datasets", "1.0", ENDS),
    Library("tokenizers", "0.7", ENDS),
    Library("safetensors", "0.2"),
    Library("sentence-transformers", "0.3"),
    Library("deepspeed", "0.5", ENDS),
    Library("diffusers", "0.3"),
    Library("transformers", "2.0", ENDS, members=_TRANSFORMERS, named=_MODELS, listed=True),
    Library("transformers", "4.40", ENDS, members=_BASES, defined=_MODELLING, part=MODELS),
    Library("bitsandbytes", "0.35", ALL),
    Library("torch", "1.0", inner=_TORCH_INNER),
    Library("torchvision", "0.2", ALL),
    Library("torchaudio", "0.3", ALL),
    Library("torchtext", "0.2.3", ALL),
    Library("torchmetrics", "0.2"),
    Library("torchao", "0.1", ENDS),
    Library("triton", "2.0", ENDS),
    Library("vllm", "0.2", ALL, members=_VLLM, named=("vllm/**.py",)),
    Library("xformers", "0.0.16", ALL),
    Library("llamafactory", "0.7", ALL),
    Library("ms-swift", "2.0", root="swift"),
    Library("unsloth", "2024.8"),
    Library("unsloth-zoo", "2024.9"),
    Library("optimum", "1.0"),
    Library("auto-gptq", "0.2"),
    Library("autoawq", "0.1", ALL, "awq"),
    Library("gptqmodel", "1.0"),
    Library("compressed-tensors", "0.3", ALL),
    Library("liger-kernel", "0.1", ALL),
    Library("flash-attn", "2.0", PATCHES),
    Library("pytorch-lightning", "0.7"),
    Library("timm", "0.1", PATCHES),
    Library("einops", "0.1"),
    Library("pytorch-transformers", "1.0", ALL),
    Library("sacrebleu", "1.2"),
    Library("seqeval", "0.0.3", ALL),
    Library("numpy", "1.13"),
    Library("scipy", "0.19"),
    Library("pandas", "0.20"),
    Library("pyarrow", "0.10"),
    Library("scikit-learn", "0.18", root="sklearn"),
    Library("scikit-image", "0.13", root="skimage"),
    Library("pillow", "4.0", root="PIL"),
    Library("networkx", "2.0"),
    Library("gensim", "3.0"),
    Library("numba", "0.40"),
    Library("librosa", "0.5", ALL),
    Library("tensorboardx", "1.0", ALL, "tensorboardX"),
    Library("keras", "2.0"),
    Library("tensorflow", "1.9", members=("tensorflow/__init__.py", "tensorflow/_api/**/__init__.py")),
    Library("gradio", "2.0"),
    Library("openai", "0.27", members=("openai/*.py", "openai/types/**.py")),
    Library("fastapi", "0.80"),
    Library("pydantic", "1.0"),
    Library("llama-cpp-python", "0.1", ENDS, "llama_cpp"),
    Library("starlette", "0.13"),
    Library("protobuf", "3.5", root="google.protobuf"),
    Library("pyyaml", "3.12", ALL, "yaml"),
    Library("click", "6.0"),
    Library("jinja2", "2.9"),
    Library("markupsafe", "1.0", ALL),
    Library("sglang", "0.1", PATCHES, inner=_SGLANG_INNER),
    Library("flashinfer-python", "0.2", root="flashinfer"),
    Library("httpx", "0.23"),
    Library("xgrammar", "0.1", ALL),
    Library("outlines", "0.0.30", ENDS),
    Library("mistral-common", "1.0"),
    Library("tenacity", "5.0"),
    Library("urllib3", "1.24"),
    Library("lightning", "2.0"),
    Library("lm-eval", "0.3", ALL),
    Library("langchain-core", "0.1", ENDS),
    Library("mmengine", "0.1"),
    Library("pyannote-audio", "2.0", root="pyannote.audio"),
    Library("kernels", "0.1"),
    Library("tensordict", "0.1"),
    Library("verl", "0.1", ALL),
    Library("llmcompressor", "0.1"),
    Library("mcp", "1.0"),
    Library("uvicorn", "0.15"),
    Library("lm-format-enforcer", "0.4", root="lmformatenforcer"),
    Library("hqq", "0.1.5", ALL),
    Library("exllamav2", "0.0.1", ALL),
    Library("mamba-ssm", "1.0", ALL),
    Library("causal-conv1d", "1.0", ALL),
    Library("sgl-kernel", "0.0.2", PATCHES),
    Library("imageio", "2.4"),
    Library("torchdata", "0.3"),
    Library("hydra-core", "1.0", root="hydra"),
    Library("packaging", "17.0"),
    Library("typing-extensions", "3.7"),
    Library("importlib-metadata", "1.0"),
    Library("attrs", "19.1", root="attr"),
    Library("requests", "2.20"),
    Library("aiohttp", "3.0"),
    Library("websockets", "8.0"),
    Library("fsspec", "0.5"),
    Library("gradio-client", "0.1"),
    Library("rich", "9.0"),
    Library("tqdm", "4.30"),
    Library("sympy", "1.4", members=("sympy/*.py", "sympy/*/__init__.py", "sympy/printing/*.py")),
    Library("nltk", "3.3"),
    Library(
        "tensorboard",
        "1.13",
        members=("tensorboard/*.py", "tensorboard/summary/**.py", "tensorboard/compat/*.py"),
    ),
    Library("wandb", "0.10", members=("wandb/*.py", "wandb/sdk/*.py", "wandb/integration/**.py")),
)
"""The libraries whose names others import, in the field and in what it stands on: all are on record."""
