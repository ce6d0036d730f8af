"""Draws machines, runs and messages at the edges of what the rules ask (`draws.toml` holds the values)."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

VALUES = tomllib.loads(Path(__file__).with_name("draws.toml").read_text(encoding="utf-8"))
CARDS: dict[str, tuple[str, int]] = VALUES["cards"]
PACKAGES: dict[str, str] = VALUES["packages"]
SETTINGS: dict[str, str] = VALUES["settings"]
MODULES: dict[str, list[str]] = VALUES["modules"]
GIB = 2**30
Dice = random.Random
Plain = dict[str, Any]
Drawn = tuple[Plain, str]
"""Facts as JSON has them, and a text that tells more."""
FRAMEWORKS = ("trl", "axolotl", "llamafactory", "ms-swift", "vllm", "transformers", None, None)
OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
NO_BLOCKS = (
    "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when"
    " initializing the engine."
)


def observed(value: object) -> Plain:
    return {"value": value, "source": "x"}


def cards_of(dice: Dice, names: list[str]) -> Plain:
    gpus = []
    for index, name in enumerate(names):
        capability, size = CARDS[name]
        told = {"index": index, "source": dice.choice(("NVML", "declared")), "name": name}
        told |= {"memory_total_bytes": size * GIB, "memory_free_bytes": size * GIB - GIB // 4}
        gpus.append({**told, "compute_capability": capability, "uuid": f"GPU-{index}a{index % 2}-b"})
    return {"value": gpus, "source": "NVML"}


def several(dice: Dice, kinds: int = 1) -> list[str]:
    """Return the names of 1 to 8 cards of so many kinds at most."""
    known = dice.sample(list(CARDS), kinds)
    return [dice.choice(known) for _ in range(dice.choice((1, 1, 2, 2, 3, 4, 8)))]


def packages_of(dice: Dice, names: list[str]) -> Plain:
    chosen = {name: dice.choice(PACKAGES[name].split()) for name in names}
    found = {n: {"name": n, "version": v, "source": "METADATA"} for n, v in chosen.items()}
    for package in found.values():
        if dice.random() < 0.15:
            package["requires"] = dice.sample(VALUES["requires"], 2)
    return found


def verdicts_of(dice: Dice) -> list[Plain]:
    """Return what some smoke kernels came to."""
    ops = dice.sample(("matmul_bf16@0", "matmul_fp8", "flash_attn_2@1", "bnb.nf4", "nccl_pair", "fault.x"), 3)
    outcomes = ("pass", "fail", "crash", "timeout", "skip")
    return [
        {
            "op": op,
            "outcome": dice.choice(outcomes),
            "source": "smoke",
            "reason": dice.choice(VALUES["reasons"]),
        }
        for op in ops
    ]


def setting(dice: Dice, key: str, value: str) -> Plain:
    plain = {"key": key, "value": value, "source": "a.yaml"}
    framework = dice.choice(FRAMEWORKS)
    return {**plain, **({"framework": framework, "native_key": f"own_{key}"} if framework else {})}


def run(dice: Dice) -> Drawn:
    """Return a run that is stated on some cards: a training, or an engine."""
    serves = dice.random() < 0.35
    keys = [key for key in SETTINGS if dice.random() < 0.15]
    keys += ("max_model_len", "tp") if serves else ("batch", "seq", "grad_ckpt", "lora_rank")
    keys = [key for key in dict.fromkeys(keys) if dice.random() < 0.85]
    settings = [setting(dice, key, dice.choice(SETTINGS[key].split())) for key in keys]
    settings.append(setting(dice, "model", dice.choice(VALUES["models"])))
    if serves:
        share = dice.choice(("0.1", "0.3", "0.5", "0.9", "0.95", "0.99", "1.5"))
        settings += [setting(dice, "vllm_utilization", share)] if dice.random() < 0.8 else []
    names = [*(["vllm"] if serves else ["trl", "peft"]), "torch", *dice.sample(["sglang", "transformers"], 1)]
    variables = {"VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1"} if dice.random() < 0.1 else {}
    text = (NO_BLOCKS if serves else OUT_OF_MEMORY) if dice.random() < 0.4 else ""
    facts = {
        "gpus": cards_of(dice, several(dice, dice.choice((1, 1, 2)))),
        "environment": {"distributions": packages_of(dice, names)},
        "settings": settings,
        "variables": variables,
    }
    return facts, text


def put_some(dice: Dice, plain: Plain, knobs: Mapping[str, Sequence[object]], chance: float) -> None:
    for key, values in knobs.items():
        if dice.random() < chance:
            plain[key] = dice.choice(values)


STATES: dict[str, tuple[object, ...]] = {
    "mig": ("Enabled", "Disabled"),
    "mig_devices": ((), ("MIG 1g.10gb Device 0: (UUID: MIG-5-c)",)),
    "compute_mode": ("Default", "Exclusive_Process", "Prohibited"),
    "ecc": ("Enabled", "Disabled"),
    "ecc_uncorrected": (0, 1),
    "remapped_rows_pending": (True, False),
    "remapped_rows_failed": (True, False),
    "persistence": (True, False),
    "pcie_width": (4, 8, 16),
    "pcie_width_max": (8, 16),
    "throttle_reasons": ((), ("sw_power_cap",), ("hw_thermal_slowdown",)),
    "uuid": (None, "GPU-1a1-b", "<gpu-1>"),
    "compute_capability": (None,),
}


def states(dice: Dice) -> Drawn:
    """Return a machine whose cards are in all states, and variables that choose among them."""
    names = several(dice, dice.choice((1, 2)))
    gpus = cards_of(dice, names)
    for gpu in gpus["value"]:
        put_some(dice, gpu, STATES, 0.12)
        total = gpu["memory_total_bytes"]
        held = (
            total // 2,
            total // 2 + 1,
            total // 10,
            total // 10 + 1,
            total - GIB,
            total - GIB + 1,
            2 * GIB,
        )
        if dice.random() < 0.5:
            gpu["memory_free_bytes"] = total - dice.choice((*held, 2 * GIB + 1, 5 * GIB, total))
        if dice.random() < 0.4:
            sizes = [dice.choice((None, 0, GIB, 3 * GIB)) for _ in range(dice.randint(1, 6))]
            gpu["processes"] = [
                {"pid": 40 + n, "name": dice.choice(("python", "", "vllm")), "used_bytes": size}
                for n, size in enumerate(sizes)
            ]
        if dice.random() < 0.06:
            gpu["unknown"] = {"name": "GPU is lost"}
            gpu["name"] = None
    variables: Plain = {"CUDA_VISIBLE_DEVICES": dice.choice(VALUES["visible"])} if dice.random() < 0.6 else {}
    put_some(dice, variables, VALUES["variables"], 0.2)
    places = [
        f"/e/lib/python{dice.choice(('3.11', '3.10'))}",
        "/o",
        "/p/x",
        "/home/a/.local/lib/python3.11/x",
    ]
    packages = packages_of(dice, ["torch", "numpy", "triton"])
    for package in packages.values():
        package["location"] = dice.choice(places)
    environment = {
        "distributions": packages,
        "kind": observed(dice.choice(("venv", "conda", "system"))),
        "prefix": observed("/e"),
        "python": observed(dice.choice(("3.11.4", "3.10.1"))),
        "builds": {"bitsandbytes": {"binaries": ["cpu", "cuda118", "cuda121"]}},
    }
    disks = {
        place: dice.choice((GIB, 5 * GIB - 1, 5 * GIB, 30 * GIB))
        for place in ("hf_cache", "tmp", "torch_cache")
    }
    facts = {
        "origin": dice.choice(("probe", "probe", "probe", "paste")),
        "gpus": gpus if dice.random() < 0.93 else {"unknown": "no driver"},
        "variables": variables,
        "environment": environment,
        "host": {"disk_free_bytes": disks} if dice.random() < 0.3 else {},
        "driver": {
            "nvml": observed(dice.choice(("ok", "ok", "driver/library version mismatch"))),
            "xids": [
                {"number": n, "pci_bus": "0", "text": f"Xid {n}"}
                for n in dice.sample((13, 31, 48, 79, 94), 1)
            ]
            if dice.random() < 0.15
            else [],
        },
    }
    text = dice.choice(
        ("RuntimeError: No CUDA GPUs are available", "NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen")
    )
    return facts, text if dice.random() < 0.25 else ""


def build(dice: Dice) -> Drawn:
    """Return a machine with builds of torch and what is compiled against it."""
    count = dice.randint(2, 7)
    names = ["torch", *dice.sample([n for n in PACKAGES if n != "torch"], count)]
    packages = packages_of(dice, names if dice.random() < 0.93 else names[1:])
    torch: Plain = {}
    knobs: dict[str, tuple[object, ...]] = {
        "cuda": ("11.8", "12.1", "12.6", "13.0"),
        "variant": ("cpu", "cuda"),
        "cxx11_abi": (True, False),
        "arch_list": (["sm_70", "sm_80"], ["sm_80", "sm_90", "sm_120"], ["sm_50", "compute_90"]),
    }
    put_some(dice, torch, knobs, 0.35)
    builds: Plain = {"torch": torch}
    for name in ("flash-attn", "xformers", "vllm", "torchvision", "deepspeed"):
        if name in packages and dice.random() < 0.5:
            builds[name] = {}
            put_some(dice, builds[name], knobs | {"torch": ("2.3", "2.6", "2.6.0+cu124")}, 0.4)
    driver: Plain = {
        "version": observed(dice.choice(("450.80.02", "470.10", "525.60.13", "535.54.03", "550.54.15")))
    }
    if dice.random() < 0.4:
        driver["version"] = observed(dice.choice(("570.86.10", "580.65.06", "590.44", "525.60.12", "452.39")))
    if dice.random() < 0.5:
        driver["cuda"] = observed(dice.choice(("11.4", "12.0", "12.2", "12.8", "13.0")))
    if dice.random() < 0.3:
        driver["user_version"] = observed(dice.choice(("535.54.03", "580.65.06", "590.44")))
    host: Plain = {}
    hosts: dict[str, tuple[object, ...]] = {
        "os": ("linux", "linux", "windows"),
        "arch": ("x86_64", "x86_64", "aarch64"),
        "glibc": ("2.17", "2.28", "2.31", "2.32", "2.35"),
        "container": ("docker", "none"),
        "distro": ("Ubuntu 22.04", "Rocky Linux 9.4", "Arch Linux"),
        "wsl": (True, False),
    }
    put_some(dice, host, {k: tuple(map(observed, v)) for k, v in hosts.items()}, 0.6)
    toolkit = {"version": dice.choice(("11.8", "12.4", "13.0")), "path": "/usr/local/cuda", "source": "PATH"}
    libraries = [
        {
            "name": name,
            "path": f"/l/lib{name}.so",
            "origin": "LD_LIBRARY_PATH",
            "version": version,
            "wins": wins,
        }
        for name, version, wins in (
            ("cuda", "535.54.03", True),
            ("cudnn", "8.9.2", True),
            ("cudart", "12.4", False),
            ("nvJitLink", "12.1", True),
        )
        if dice.random() < 0.25
    ]
    environment: Plain = {"distributions": packages, "builds": builds, "complete": dice.random() < 0.5}
    if dice.random() < 0.6:
        environment["python"] = observed(dice.choice(("3.8.10", "3.10.12", "3.12.3", "3.13.0", "3.14.0")))
    facts = {
        "origin": dice.choice(("probe", "paste")),
        "gpus": cards_of(dice, several(dice, dice.choice((1, 2)))) if dice.random() < 0.9 else observed([]),
        "driver": driver if dice.random() < 0.9 else {},
        "host": host,
        "environment": environment,
        "libraries": libraries,
        "toolkits": observed([toolkit]) if dice.random() < 0.4 else observed([]),
        "variables": {"LD_LIBRARY_PATH": "/l"} if dice.random() < 0.3 else {},
        "settings": [setting(dice, "bf16", "true")] if dice.random() < 0.2 else [],
        "verdicts": verdicts_of(dice) if dice.random() < 0.25 else [],
    }
    return facts, dice.choice(VALUES["loaded"]).format(
        dice.choice(("118", "92", "1211"))
    ) if dice.random() < 0.4 else ""


SITE = "/e/lib/python3.11/site-packages"
FRAME = '  File "{site}/{path}/{file}.py", line {line}, in {function}\n    {code}'


def message(dice: Dice) -> Drawn:
    """Return an environment and a text of lines that libraries write, some behind frames."""
    lines = []
    names = dice.sample(list(MODULES), 4)
    for _ in range(dice.choice((1, 1, 1, 2))):
        name, second = dice.sample(names, 2)
        versions = PACKAGES[name].split()
        module = dice.choice(MODULES[name])
        words = {
            **{
                "module": module,
                "package": name,
                "second": second,
                "site": SITE,
                "path": module.replace(".", "/"),
            },
            **{
                "gone": dice.choice(VALUES["gone"]),
                "cls": dice.choice(VALUES["classes"]),
                "argument": dice.choice(VALUES["arguments"]),
            },
            **{"version": dice.choice(versions), "other": dice.choice(PACKAGES[second].split())},
            **{
                "function": dice.choice(VALUES["functions"]),
                "family": dice.choice(VALUES["families_of_models"]),
            },
        }
        if dice.random() < 0.5:
            lines.append("Traceback (most recent call last):")
            for _ in range(dice.randint(1, 3)):
                place = dice.choice(MODULES[dice.choice(names)]).replace(".", "/")
                own = dice.random() < 0.3
                lines.append(
                    FRAME.format(
                        site="/home/me" if own else SITE,
                        path="code" if own else place,
                        file=dice.choice(("trainer", "utils", "__init__")),
                        line=dice.randint(1, 900),
                        function=dice.choice(VALUES["functions"]),
                        code=dice.choice(VALUES["codes"]),
                    )
                )
        lines.append(dice.choice(VALUES["messages"]).format(**words))
    environment: Plain = {"distributions": packages_of(dice, [n for n in names if dice.random() < 0.75])}
    environment["complete"] = dice.random() < 0.3
    return {"environment": environment, "origin": dice.choice(("paste", "probe"))}, "\n".join(lines)


def report(dice: Dice) -> Drawn:
    """Return a machine with builds, and three error lines of any kind that others met."""
    facts, _ = build(dice)
    return facts, "\n".join(dice.sample(VALUES["said"], 3))
