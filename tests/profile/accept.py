"""Gives files to the real parser of a framework: run by an interpreter that has it.

    python accept.py has FRAMEWORK             exit 0 when the framework can be imported
    python accept.py FRAMEWORK MODEL FOLDER...  prints why each folder is refused ("": it is not)

A warning of deprecation counts as a refusal.
"""

import json
import os
import sys
import warnings

os.environ["DS_ACCELERATOR"] = "cpu"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["HF_HUB_OFFLINE"] = "1"
LAUNCHED = {
    "RANK": "0",
    "LOCAL_RANK": "0",
    "WORLD_SIZE": "1",
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "29517",
}
"""What torchrun sets, which the first line of the files says to launch by."""
ROOTS = {"ms-swift": "swift"}


def versions_of(framework):
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in (framework, "transformers", "torch", "accelerate", "deepspeed", "trl"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            pass
    return found


def on_a_machine_without_gpu(values):
    """bf16 and optimizers of the card are refused without one, rightly; nothing else is changed."""
    return {**values, "use_cpu": True}


def accept_transformers(folder, model):
    from transformers import HfArgumentParser, TrainingArguments

    with open(os.path.join(folder, "training_args.json")) as stream:
        values = json.load(stream)
    HfArgumentParser(TrainingArguments).parse_dict(on_a_machine_without_gpu(values))
    with open(os.path.join(folder, "model.json")) as stream:
        told = json.load(stream)
    if "lora_config" in told:
        from peft import LoraConfig

        LoraConfig(**told["lora_config"])
    if "quantization_config" in told["from_pretrained"]:
        from transformers import BitsAndBytesConfig

        BitsAndBytesConfig(**told["from_pretrained"]["quantization_config"])


def accept_trl(folder, model):
    import trl
    import yaml
    from trl import ModelConfig, ScriptArguments, TrlParser

    path = os.path.join(folder, "train.yaml")
    with open(path) as stream:
        task = stream.readline().split()[2]  # of the command to start it by
        values = on_a_machine_without_gpu(yaml.safe_load(stream))
    with open(path, "w") as stream:
        yaml.safe_dump(values, stream)
    config = getattr(trl, {"reward": "Reward"}.get(task, task.upper()) + "Config")
    TrlParser((ScriptArguments, config, ModelConfig)).parse_args_and_config(["--config", path])


def accept_accelerate(folder, model):
    from accelerate.commands.config.config_args import load_config_from_file
    from accelerate.utils import DeepSpeedPlugin, FullyShardedDataParallelPlugin

    config = load_config_from_file(os.path.join(folder, "accelerate.yaml"))
    if config.deepspeed_config:
        given = dict(config.deepspeed_config)
        DeepSpeedPlugin(
            zero_stage=given["zero_stage"],
            offload_optimizer_device=given["offload_optimizer_device"],
            offload_param_device=given["offload_param_device"],
            gradient_accumulation_steps=given["gradient_accumulation_steps"],
            gradient_clipping=given["gradient_clipping"],
            zero3_init_flag=given["zero3_init_flag"],
        )
    if config.fsdp_config:
        names = {key.removeprefix("fsdp_") for key in config.fsdp_config}
        fields = set(FullyShardedDataParallelPlugin.__dataclass_fields__)
        known = {"version": "fsdp_version", "offload_params": "cpu_offload"}
        assert {known.get(name, name) for name in names} <= fields, names


def accept_deepspeed(folder, model):
    from deepspeed.runtime.config import DeepSpeedConfig

    with open(os.path.join(folder, "ds_config.json")) as stream:
        values = json.load(stream)
    gpus = values["train_batch_size"] // values["train_micro_batch_size_per_gpu"]
    gpus //= values["gradient_accumulation_steps"]
    values["train_batch_size"] //= gpus  # one process parses what was written for several
    DeepSpeedConfig(values)


def accept_llamafactory(folder, model):
    import yaml
    from llamafactory.hparams import get_train_args

    with open("train.yaml") as stream:
        values = on_a_machine_without_gpu(yaml.safe_load(stream))
    if "deepspeed" in values:
        os.environ.update(LAUNCHED)
    get_train_args({**values, "model_name_or_path": model})


def accept_ms_swift(folder, model):
    import yaml
    from swift.cli.main import parse_yaml_args
    from swift.utils import parse_args

    with open("train.yaml") as stream:
        values = yaml.safe_load(stream)
    grpo = "rlhf_type" in values
    with open("train.yaml", "w") as stream:
        stub = {"model": model, "model_type": "qwen2", "template": "qwen2_5"}
        yaml.safe_dump({**on_a_machine_without_gpu(values), **stub}, stream)
    if grpo:
        from swift.arguments import RLHFArguments as Arguments
    else:
        from swift.arguments import SftArguments as Arguments
    argv = ["train.yaml"]
    argv = parse_yaml_args(argv) or argv
    _, remaining = parse_args(Arguments, argv)
    assert not remaining, remaining


def accept_axolotl(folder, model):
    import yaml
    from axolotl.utils.config import validate_config
    from axolotl.utils.dict import DictDefault

    with open(os.path.join(folder, "train.yaml")) as stream:
        values = yaml.safe_load(stream)
    cards = 4
    if os.path.exists("cards"):  # processes that train, as axolotl's command counts them by WORLD_SIZE
        with open("cards") as stream:
            cards = int(stream.read())
    capability = {"bf16": True, "tf32": True, "fp8": False, "n_gpu": cards, "compute_capability": "sm_89"}
    validate_config(
        DictDefault({**values, "base_model": model}),
        capabilities=capability,
        env_capabilities={"torch_version": "2.11.0"},
    )


def main(arguments):
    framework = arguments[-1] if arguments[0] == "has" else arguments[0]
    root = ROOTS.get(framework, framework)
    if arguments[0] == "has":
        __import__(root)
        print(json.dumps(versions_of(framework)))
        return
    warnings.filterwarnings("error", category=FutureWarning, message=".*deprecated.*")
    warnings.filterwarnings("ignore", message=".*torch.jit.*")  # what imports say, whatever the files
    accept = globals()["accept_" + framework.replace("-", "_")]
    answers = {}
    for folder in arguments[2:]:
        os.chdir(folder)  # the files name each other
        try:
            accept(folder, arguments[1])
            answers[folder] = ""
        except BaseException as error:
            answers[folder] = f"{type(error).__name__}: {error}"[:1500]
    print("\n" + json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1:])
