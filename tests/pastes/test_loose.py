"""What people type by hand, in either language, is read as it is meant."""

from __future__ import annotations

import pytest

from envdoctor.facts import Observed

GIB = 1 << 30


@pytest.mark.parametrize(
    ("line", "version", "specifier"),
    [
        ("torch: 2.1.0", "2.1.0", ""),
        ("- PyTorch version: 2.1.2 (GPU)", "2.1.2", ""),
        ("torch - 2.3.0+cu118", "2.3.0+cu118", ""),
        ("torch==2.1.0+cu121", "2.1.0+cu121", ""),
        ("torch == 2.0.1, bitsandbytes == 0.41.1", "2.0.1", ""),
        ("I run torch 2.1.0 with CUDA 12.1.", "2.1.0", ""),
        ("* **PyTorch**: `2.1.0`", "2.1.0", ""),
        ("> torch：2.1.0，python：3.10", "2.1.0", ""),
        ("torch: 2.2.0a0+81ea7a4", "2.2.0a0+81ea7a4", ""),
        ("torch: 2.4", None, "==2.4.*"),
        ("torch: 0.14.x", None, "==0.14.*"),
        ("torch: <2.1", None, "<2.1"),
        ("torch: old (<2.1)", None, "<2.1"),
        ("torch: >2.1.0 (exact unknown)", None, ">2.1.0"),
        ("torch: newer than 2.1.0 (exact unknown)", None, ">2.1.0"),
        ("torch: 2.1+", None, ">=2.1"),
        ("torch: latest", None, ""),
        ("# It fails on torch 2.1.0 post2 since today", "2.1.0.post2", ""),
    ],
)
def test_versions_as_told(read, line, version, specifier):
    torch = read(line).distribution("torch")
    assert (torch.version, torch.specifier) == (version, specifier)


@pytest.mark.parametrize(
    ("text", "build"),
    [
        ("torch: +cu129", {"cuda": "12.9", "variant": "cu129"}),
        ("torch: 2.3.1+cu121", {"cuda": "12.1", "variant": "cu121"}),
        ("torch: 2.2.0+cpu", {"cuda": None, "variant": "cpu"}),
        ("torch: 2.0.1 (CPU)", {"cuda": None, "variant": "cpu"}),
    ],
)
def test_builds_of_torch(read, text, build):
    assert read(text).environment.builds["torch"] == build


def test_a_build_tag_alone_tells_no_version(read):
    assert read("torch: +cu129").distribution("torch") is None


@pytest.mark.parametrize(
    ("line", "names", "memory", "capability"),
    [
        ("GPU: Tesla T4", ["Tesla T4"], None, None),
        ("gpu: 2x A100 40GB", ["A100 40GB"] * 2, 40 * GIB, None),
        ("gpu: RTX 3090 24G × 4", ["RTX 3090"] * 4, 24 * GIB, None),
        ("显卡型号：RTX 4090", ["RTX 4090"], None, None),
        ("gpu: Tesla K80 (3.7)", ["Tesla K80"], None, "3.7"),
        ("gpu: Quadro RTX 5000 (Turing, sm_75)", ["Quadro RTX 5000"], None, "7.5"),
        ("gpu: 3x 24GB (23.64 GiB)", [None] * 3, int(23.64 * GIB), None),
        ("GPU: A6000 48GB", ["A6000"], 48 * GIB, None),
        ("CUDA device(s): NVIDIA H20, NVIDIA H20", ["NVIDIA H20"] * 2, None, None),
        ("GPU: NVIDIA A100-SXM4-80GB MIG 2g.20gb", ["NVIDIA A100-SXM4-80GB"], 20 * GIB, None),
        ("GPU: MIG 1g.5gb", [None], 5 * GIB, None),
        ("I train on an A100 2g.20gb", ["A100"], 20 * GIB, None),
        ("It happens on 2x A100 40GB only", ["A100 40GB"] * 2, 40 * GIB, None),
        ("Device: cuda:0 Tesla T4", ["Tesla T4"], None, None),
    ],
)
def test_gpus(read, line, names, memory, capability):
    gpus = read(line).gpus.value
    assert [gpu.name for gpu in gpus] == names
    assert gpus[0].memory_total_bytes == memory
    assert (str(gpus[0].compute_capability) if capability else None) == capability


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("GPU: A100\nGPU: T4\n", ["A100", "T4"]),
        ("- GPU: 2x A100\n- GPU: RTX 4090\n- GPU: T4\n", ["A100", "A100", "RTX 4090", "T4"]),
        ("GPU: A100\nGPU: A100\n", ["A100"]),
        ("GPU: A100\nDriver: 535.161.08\nGPU: T4\n", ["A100"]),
    ],
)
def test_cards_under_one_another_are_a_list(read, text, names):
    assert [gpu.name for gpu in read(text).gpus.require()] == names


def test_four_cudas_are_four_facts(read):
    facts = read(
        "driver: 535.104.05\ndriver_cuda: 12.2\nnvcc: 11.8\ntorch.version.cuda: "
        "12.1\ncontainer_cuda: 12.4\nCUDA: 12.3\n"
    )
    assert str(facts.driver.cuda.value) == "12.2"
    assert facts.environment.builds["torch"]["cuda"] == "12.1"
    told = {(str(t.version), t.path): t.active for t in facts.toolkits.value}
    assert told == {("11.8", "nvcc"): True, ("12.4", "container image"): False, ("12.3", ""): False}
    assert "which CUDA is not told" in facts.toolkits.value[-1].source


def test_a_bare_cuda_version_beside_the_driver_is_the_drivers(read):
    facts = read("Driver Version: 460.80\nCUDA Version: 11.2\n")
    assert str(facts.driver.cuda.value) == "11.2"
    assert facts.toolkits.get() is None


@pytest.mark.parametrize(
    ("line", "os", "distro", "glibc", "wsl"),
    [
        ("OS: Ubuntu 20.04 (glibc 2.31)", "linux", "Ubuntu 20.04", "2.31", None),
        ("Platform: Linux-5.4.0-169-generic-x86_64-with-glibc2.31", "linux", None, "2.31", None),
        ("os: WSL2", "linux", None, None, True),
        ("OS: Windows 11", "windows", None, None, None),
        ("操作系统：Ubuntu 22.04", "linux", "Ubuntu 22.04", None, None),
        ("OS: Red Hat Enterprise Linux 8.4", "linux", "Red Hat Enterprise Linux 8.4", None, None),
    ],
)
def test_systems(read, line, os, distro, glibc, wsl):
    host = read(line).host
    assert (host.os.get(), host.distro.get(), host.glibc.get(), host.wsl.get()) == (os, distro, glibc, wsl)


def test_one_line_holds_everything(read):
    facts = read("OS: Linux Python: 3.10 torch: 2.1.2 transformers: 4.38.2 GPU: RTX 4090 driver: 535.54")
    assert facts.environment.python.value == "3.10"
    assert facts.distribution("transformers").version == "4.38.2"
    assert facts.gpus.value[0].name == "RTX 4090"
    assert str(facts.driver.version.value) == "535.54"


def test_contradictions_are_noted_and_the_first_wins(read):
    facts = read("transformers: 4.40.1\n\ntransformers 4.40.2\n")
    assert facts.distribution("transformers").version == "4.40.1"
    assert any("4.40.2" in note for note in facts.notes)


def test_a_python_known_only_as_a_range_is_said(read):
    facts = read("python: newer than 3.10")
    assert facts.environment.python.get() is None
    assert "newer than 3.10" in facts.notes[0]


def test_wild_names_of_nvidia_packages(read):
    facts = read("packages: nvidia-*-cu11 and nvidia-*-cu12 both installed")
    assert set(facts.environment.distributions) == {"nvidia-*-cu11", "nvidia-*-cu12"}


def test_cudnn_in_use(read):
    facts = read("cudnn_runtime: 8.6.0\n\ntorch.backends.cudnn.version(): 90100\n")
    assert [library.version for library in facts.libraries] == ["8.6.0", "9.1.0"]


def test_nothing_recognised_is_said(read):
    assert read("hello there").unread["the paste"].startswith("nothing in it was recognised")


@pytest.mark.parametrize(
    "dressed",
    [
        "\x1b[32mtorch: 2.1.0\x1b[0m",
        "[32mtorch: 2.1.0[0m",
        "<td>torch</td><td>2.1.0</td>",
        "<summary>torch: 2.1.0</summary>",
        "torch: 2.1.0\r\nx\r\n",
        "\ufefftorch: 2.1.0",
    ],
)
def test_dressed_lines(read, dressed):
    assert read(dressed).distribution("torch").version == "2.1.0"


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("run on my device, which has two V100 16G gpus, but it fails", ["V100"] * 2),
        ("trained on 4 A100 gpus", ["A100"] * 4),
        ("My setup: dual RTX 3090", ["RTX 3090"] * 2),
        ("I have two 3090s", ["3090s"] * 2),
        ("We train on L40S x 4", ["L40S"] * 4),
        ("training on A100-SXM4-80GB*8", ["A100-SXM4-80GB"] * 8),
        ("GPU: H100*8 cluster", ["H100"] * 8),
        ("GPU: A100 (40GB x 8)", ["A100 40GB"] * 8),
        ("an A100 x86_64 machine", ["A100"]),
        ("of the 3 A100 runs two failed", ["A100"]),
        ("with torch 2 A100 is slow", ["A100"]),
        ("step 4090 of two epochs", []),
        ("vllm dies on my 2x 3090", ["NVIDIA GeForce RTX 3090"] * 2),
        ("   \\\\   /|    Tesla T4. Num GPUs = 2. Max memory: 14.563 GB.", ["Tesla T4"] * 2),
    ],
)
def test_counts_of_cards_in_words(read, line, names):
    gpus = read(line).gpus
    assert [gpu.name for gpu in (gpus.value if isinstance(gpus, Observed) else ())] == names


def test_chinese_counts_of_cards(read):
    facts = read("Qwen2.5-VL-7B 双卡 4090 训练报错")
    assert [gpu.name for gpu in facts.gpus.value] == ["NVIDIA GeForce RTX 4090"] * 2
    assert facts.setting("model").value == "Qwen2.5-VL-7B"


def test_statements_on_one_line_do_not_bleed_into_one_another(read):
    facts = read(
        "torch: +cu129; trl: 0.18.x; transformers: 4.52.4; accelerate: <1.3.0; gpu: Tesla T4, Tesla T4"
    )
    told = {name: d.version or d.specifier for name, d in facts.environment.distributions.items()}
    assert told == {"trl": "==0.18.*", "transformers": "4.52.4", "accelerate": "<1.3.0"}
    assert facts.environment.builds == {"torch": {"cuda": "12.9", "variant": "cu129"}}
    assert [gpu.name for gpu in facts.gpus.value] == ["Tesla T4"] * 2


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\n> ", "\n  > "])
def test_lines_end_and_begin_as_mails_and_old_machines_write_them(read, end):
    lines = (
        "I see",
        "Package Version",
        "------- -------",
        "torch   2.1.0",
        "numpy   1.26.0",
        "peft    0.9.0",
    )
    found = read(end.join(lines)).environment.distributions
    told = {name: (one.version, one.source) for name, one in found.items()}
    assert told == {
        "torch": ("2.1.0", "pip list, line 4"),
        "numpy": ("1.26.0", "pip list, line 5"),
        "peft": ("0.9.0", "pip list, line 6"),
    }


@pytest.mark.parametrize(
    "line",
    ["Works on torch 2.1.0 but on torch 2.4.0 I get", "fails with vllm 0.6.0, fine with vllm 0.5.4"],
)
def test_releases_set_against_each_other_tell_of_neither(read, line):
    assert not read(line).environment.distributions


def test_advice_in_one_sentence_hides_nothing_of_the_next(read):
    line = "fp16 works with a small loss scale. It fails on my V100s. You should try torch 2.9.1."
    facts = read(f"I run torch 2.1.0. {line}")
    assert [gpu.name for gpu in facts.gpus.value] == ["V100s"]
    assert facts.distribution("torch").version == "2.1.0"


@pytest.mark.parametrize(
    "line", ["Better set peft==0.13.2", "I would suggest peft 0.13.2", "Please use peft 0.13.2"]
)
def test_what_somebody_advises_is_not_installed(read, line):
    assert not read(line).environment.distributions


def test_a_command_does_not_hide_the_card_that_it_ran_on(read):
    facts = read("pip install flash-attn fails on my Windows 11 laptop (RTX 4060)")
    assert [gpu.name for gpu in facts.gpus.value] == ["RTX 4060"]
    assert facts.host.os.value == "windows"
    assert facts.distribution("flash-attn") is None or facts.distribution("flash-attn").version is None


def test_the_paths_of_a_traceback_tell_of_windows(read):
    assert read('  File "D:\\ai\\train.py", line 3, in <module>').host.os.value == "windows"


def test_a_rank_of_nccl_is_no_rank_of_lora(read):
    told = read("NCCL INFO comm 0x5 rank 0 nranks 4 cudaDev 0\nI train LoRA with rank 16 on an A100\n")
    assert [s.value for s in told.settings if s.key == "lora_rank"] == ["16"]


def test_a_release_that_a_person_calls_unsupported_is_not_installed(read):
    told = read("pytorch 2.7 is not supported\nso vllm 0.9.1 can not install\nI use torch 2.6.0\n")
    assert {n: d.version for n, d in told.environment.distributions.items()} == {"torch": "2.6.0"}


def test_pairs_without_a_comma_are_all_read(read):
    facts = read("trl 0.19.1 transformers 4.53.1 peft 0.15.2")
    told = {name: one.version for name, one in facts.environment.distributions.items()}
    assert told == {"trl": "0.19.1", "transformers": "4.53.1", "peft": "0.15.2"}


@pytest.mark.parametrize(
    ("line", "card"),
    [
        ("fp16, T4 on colab, unsloth 2025.3.19", "T4"),
        ("on a free colab T4 instance", "T4"),
        ("the smallest GPU there is: L4", "L4"),
        ("on a 4090 with driver 550", "NVIDIA GeForce RTX 4090"),
        ("my 3090, torch 2.5.1", "NVIDIA GeForce RTX 3090"),
        ("after 3090 steps of torch 2.5.1", None),
        ("a 3090 token prompt to vllm", None),
        ("my 3090 training steps with torch 2.5.1", None),
        ("a macbook with M4 and torch 2.5.1", None),
        ("see section T4 of the torch 2.5.1 manual", None),
    ],
)
def test_cards_that_a_word_beside_them_makes_sure(read, line, card):
    gpus = read(line).gpus
    names = [gpu.name for gpu in gpus.value] if isinstance(gpus, Observed) else []
    assert names == ([card] if card else [])


@pytest.mark.parametrize("line", ["torch2.5.1+cu124 py3.10", "Python 3.10, torch 2.5.1"])
def test_python_in_short(read, line):
    assert read(line).environment.python.get() == "3.10"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            "verl==0.4.1.x  torch==2.4.0  tensordict==0.5.0  vllm==0.6.3",
            {"verl": "==0.4.1.*", "torch": "2.4.0", "vllm": "0.6.3"},
        ),
        ("transformers==4.49.0 llamafactory 0.9.2", {"transformers": "4.49.0", "llamafactory": "0.9.2"}),
        ("ms-swift 3.5.0 / transformers 4.51 / A800", {"ms-swift": "3.5.0", "transformers": "==4.51.*"}),
    ],
)
def test_packages_on_one_line_are_read_each_with_its_own_version(read, line, told):
    found = read(line).environment.distributions
    assert {name: one.version or one.specifier for name, one in found.items()} == told


@pytest.mark.parametrize(
    ("line", "batch"),
    [
        ("batch_size = 128 // devices", None),
        ("per_device_train_batch_size = 128 // torch.cuda.device_count()", None),
        ("TrainingArguments(per_device_train_batch_size=64 // n_gpu, bf16=True)", None),
        ("batch_size = 16 * world_size", None),
        ("per_device_train_batch_size = 128 // 4", "32"),
        ("batch_size = 8 // on each of the cards", "8"),
        ('"per_device_train_batch_size": 4, // of each', "4"),
    ],
)
def test_what_code_works_out_is_no_number_before_its_variables_are(read, line, batch):
    told = read(line).setting("batch")
    assert (told and told.value) == batch


@pytest.mark.parametrize(
    "line",
    [
        "We run torch >=2.11 (PyPI, cu13) with driver 570/575 and it sees no card.",
        "torch 2.11.0 (cu130), driver 550/570/575 on our nodes",
    ],
)
def test_the_newest_of_several_drivers_and_the_cuda_of_a_build_are_read(read, line):
    facts = read(line)
    assert str(facts.driver.version.value) == "575"
    assert facts.environment.builds["torch"]["cuda"] == "13.0"
