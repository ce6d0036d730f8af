"""Where each framework declares what its settings files may say: its classes, parsers and constants."""

from __future__ import annotations

from dataclasses import dataclass

KNOWN = {"transformers": ("*TrainingArguments",), "trl": ("*Config", "*Arguments")}
"""Classes of other packages whose keys are read with those packages."""


@dataclass(frozen=True, slots=True)
class Framework:
    """A framework: its distribution, the oldest release that is read, and where its settings are declared.

    `classes` are pairs of a file and a class name, `parsers` files whose options count, `words` files whose
    constants name keys; all are patterns. `trainers` are classes of which a run takes one, told apart;
    where none is told, the `usual` ones are meant.
    In a `flat` framework sections are not told apart.
    """

    name: str
    since: str
    classes: tuple[tuple[str, str], ...]
    parsers: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    trainers: tuple[tuple[str, str], ...] = ()
    usual: tuple[str, ...] = ()
    flat: bool = False


FRAMEWORKS = (
    Framework("transformers", "4.0", (("transformers/training_args*.py", "*TrainingArguments"),)),
    Framework(
        "trl",
        "0.8",
        (
            ("trl/trainer/*model_config.py", "ModelConfig"),
            ("trl/scripts/utils.py", "*Arguments"),
            ("trl/scripts/utils.py", "DatasetMixtureConfig"),
            ("trl/commands/*.py", "*Arguments"),
        ),
        trainers=(
            ("trl/trainer/*.py", "*Config"),
            ("trl/experimental/*_config.py", "*Config"),
            ("trl/scripts/vllm_serve.py", "*Arguments"),
        ),
        usual=("SFTConfig", "GRPOConfig"),
    ),
    Framework(
        "llamafactory",
        "0.7",
        (("llamafactory/hparams/*.py", "*Arguments"), ("llamafactory/v1/config/*.py", "*Arguments")),
    ),
    Framework(
        "ms-swift",
        "2.0",
        (
            ("swift/llm/utils/argument.py", "*Arguments"),
            ("swift/llm/megatron/argument.py", "*Arguments"),
            ("swift/llm/argument/*.py", "*Arguments"),
            ("swift/arguments/*.py", "*Arguments"),
            ("swift/megatron/argument*/*.py", "*Arguments"),
            ("swift/trainers/*arguments.py", "*"),
            ("swift/rlhf_trainers/*arguments.py", "*"),
        ),
    ),
    Framework(
        "axolotl",
        "0.4",
        (
            ("axolotl/utils/schemas/config.py", "Axolotl*"),
            ("axolotl/utils/config/models/input/*.py", "Axolotl*"),
            ("axolotl/integrations/*args.py", "*"),
        ),
    ),
    Framework(
        "accelerate",
        "0.12",
        (("accelerate/commands/config/config_args.py", "*Config"), ("accelerate/utils/dataclasses.py", "*")),
        parsers=("accelerate/commands/launch.py",),
        flat=True,
    ),
    Framework(
        "deepspeed",
        "0.5",
        (("deepspeed/*config*.py", "*"),),
        words=("deepspeed/*constants.py", "deepspeed/runtime/*config.py"),
        flat=True,
    ),
    Framework(
        "vllm",
        "0.2",
        (
            ("vllm/engine/arg_utils.py", "*EngineArgs"),
            ("vllm/entrypoints/openai/cli_args.py", "*Args"),
        ),
        parsers=(
            "vllm/engine/arg_utils.py",
            "vllm/entrypoints/openai/cli_args.py",
            "vllm/entrypoints/openai/api_server.py",
            "vllm/entrypoints/cli/serve.py",
        ),
    ),
    Framework(
        "sglang",
        "0.3",
        (("sglang/srt/server_args.py", "ServerArgs"),),
        parsers=("sglang/srt/server_args.py",),
    ),
)
