"""Deep facts: read from the few bytes that hold them, told with a reason when they are not there."""

from __future__ import annotations

import json
import random

import pytest
from fake_index import FakeFile, FakeIndex, sdist_bytes

from envdoctor.harvest.extract import (
    FAMILIES,
    bitsandbytes,
    deepspeed,
    extractor_of,
    torch,
    transformers,
    xformers,
)
from envdoctor.harvest.extract.wheels import linux_wheels
from envdoctor.harvest.index_pages import IndexFile, read_project_page
from envdoctor.harvest.remote_archive import BadArchive

LINUX = "manylinux_2_28_x86_64"


def read(index: FakeIndex, family: str, version: str = "1.0") -> dict:
    extractor = extractor_of(family)
    assert extractor is not None
    with index.fetcher() as fetcher:
        page = read_project_page(fetcher, index.url, family)
        assert page is not None
        return extractor.read(fetcher, page.releases()[version])


def library(literal: bytes) -> bytes:
    """A library of three megabytes that cannot be compressed, with a literal in its first third."""
    noise = random.Random(0).randbytes
    return noise(1_000_000) + literal + noise(2_000_000)


def torch_members(literal: bytes, cuda: str | None = "12.8") -> dict[str, bytes]:
    version = (
        f"__version__ = '2.8.0+x'\ndebug = False\ncuda: Optional[str] = {cuda!r}\nhip: Optional[str] = None\n"
    )
    return {
        "torch/version.py": version.encode(),
        "torch/share/cmake/Torch/TorchConfig.cmake": b'set(TORCH_CXX_FLAGS "-D_GLIBCXX_USE_CXX11_ABI=1")',
        "torch/lib/libtorch_python.so": library(literal),
    }


def test_every_family_has_an_extractor_and_others_none():
    assert all(extractor_of(family) for family in FAMILIES)
    assert extractor_of("numpy") is None


def test_torch_tells_cuda_architectures_and_abi_of_each_wheel(index: FakeIndex):
    members = torch_members(b"std::string ipc_hsm_70 sm_90a compute_120\0")
    index.add_wheel("torch", "2.8.0", tag=f"cp312-cp312-{LINUX}", members=members)
    index.add_wheel(
        "torch", "2.8.0", tag="cp312-cp312-manylinux_2_28_aarch64", members=torch_members(b"", None)
    )
    platforms = read(index, "torch", "2.8.0")["platforms"]
    assert platforms["x86_64"] == {
        "build": "2.8.0+x",
        "cuda": "12.8",
        "arch_list": ["sm_70", "sm_90a", "compute_120"],
        "cxx11_abi": True,
        "source": f"wheel:torch-2.8.0-cp312-cp312-{LINUX}.whl",
    }
    assert (platforms["aarch64"]["cuda"], platforms["aarch64"]["arch_list"]) == (None, [])


def test_torch_without_a_list_of_architectures_is_a_reason(index: FakeIndex):
    index.add_wheel("torch", "2.8.0", tag=f"cp312-cp312-{LINUX}", members=torch_members(b""))
    assert "no list of architectures" in read(index, "torch", "2.8.0")["platforms"]["x86_64"]["reason"]


@pytest.mark.parametrize("cut", range(1, 30, 3))
def test_a_literal_across_two_pieces_is_found_whole(cut):
    literal = b"\0sm_70 sm_75 sm_80 sm_100\0after"
    assert torch.find_arch_list([b"x" * 900 + literal[:cut], literal[cut:]]) == [
        "sm_70",
        "sm_75",
        "sm_80",
        "sm_100",
    ]


@pytest.mark.parametrize(
    ("config", "abi"), [("..CXX11_ABI=0..", False), ("-D_GLIBCXX_USE_CXX11_ABI=0", False), ("", True)]
)
def test_the_abi_flag_and_its_absence(config, abi):
    assert torch.parse_abi(config.replace("..CXX11", "_GLIBCXX_USE_CXX11")) is abi


def test_old_version_files_have_no_annotations():
    assert torch.parse_version_file("__version__ = '1.12.0+cu102'\ncuda = '10.2'\nhip = None") == {
        "__version__": "1.12.0+cu102",
        "cuda": "10.2",
    }


def test_bitsandbytes_tells_its_libraries(index: FakeIndex):
    names = ("cpu", "cuda118", "cuda128", "cuda118_nocublaslt", "rocm714", "rocm64", "xpu2025")
    members = {f"bitsandbytes/libbitsandbytes_{name}.so": b"" for name in names}
    index.add_wheel("bitsandbytes", "1.0", tag=f"py3-none-{LINUX}", members=members)
    assert read(index, "bitsandbytes")["platforms"]["x86_64"] == {
        "cuda": ["118", "128"],
        "nocublaslt": True,
        "rocm": ["64", "714"],
        "xpu": ["2025"],
        "cpu": True,
        "source": f"wheel:bitsandbytes-1.0-py3-none-{LINUX}.whl",
    }


def test_bitsandbytes_without_the_cpu_library_says_so():
    assert bitsandbytes.parse_libraries(["bitsandbytes/libbitsandbytes_cuda126.so"])["cpu"] is False


def test_xformers_tells_what_it_was_built_for(index: FakeIndex):
    record = {
        "version": {"cuda": 1208, "torch": "2.8.0+cu128", "python": "3.9.23", "flash": "v2.8.0"},
        "env": {"TORCH_CUDA_ARCH_LIST": "7.5 8.0+PTX 9.0a"},
    }
    members = {"xformers/cpp_lib.json": json.dumps(record).encode()}
    index.add_wheel("xformers", "1.0", tag=f"cp39-abi3-{LINUX}", members=members)
    facts = read(index, "xformers")
    assert (facts["torch"], facts["cuda"]) == ("2.8.0+cu128", "12.8")
    assert facts["arch_list"] == ["7.5", "8.0+PTX", "9.0a"]


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"version": {}, "env": {}}'])
def test_a_malformed_build_record_is_refused(body):
    with pytest.raises(BadArchive, match="malformed"):
        xformers.parse_build_record(body)


def test_a_release_without_a_linux_wheel_is_a_reason(index: FakeIndex):
    index.add_wheel("xformers", "1.0", tag="cp39-cp39-win_amd64")
    assert read(index, "xformers") == {"reason": "no Linux wheel"}


WHITELIST = 'cuda_minor_mismatch_ok = {\n    10: ["10.0"],\n    12: ["12.0", "12.1"],\n}\n'


@pytest.mark.parametrize("kind", ["sdist", "wheel"])
def test_deepspeed_tells_which_cuda_versions_may_be_mixed(index: FakeIndex, kind):
    if kind == "sdist":
        content = sdist_bytes("deepspeed", "1.0", {"op_builder/builder.py": WHITELIST, "z.py": ""})
        index.add("deepspeed", FakeFile("deepspeed-1.0.tar.gz", content))
    else:
        index.add_wheel(
            "deepspeed", "1.0", members={"deepspeed/ops/op_builder/builder.py": WHITELIST.encode()}
        )
    assert read(index, "deepspeed")["cuda_minor_mismatch_ok"] == {"10": ["10.0"], "12": ["12.0", "12.1"]}


@pytest.mark.parametrize(
    "source", ["def (", "", "cuda_minor_mismatch_ok = make()", "cuda_minor_mismatch_ok = [1]"]
)
def test_a_whitelist_that_is_no_literal_is_refused(source):
    with pytest.raises(BadArchive):
        deepspeed.parse_whitelist(source)


TABLE = """deps = {
    "accelerate": "accelerate>=1.1.0",
    "numpy": "numpy>=1.17",
    "tokenizers": "tokenizers>=0.22.0,<=0.23.0",
    "torch": "torch>=2.1,<2.7",
    "deepspeed": "deepspeed>=0.9.3",
    "Pillow": "Pillow",
}
"""
CHECK = 'pkgs_to_check_at_runtime = ["python", "numpy", "tokenizers", "accelerate"]\n'
OLD_CHECK = 'pkgs_to_check_at_runtime = "python numpy tokenizers".split()\n'
IMPORTS = """
ACCELERATE_MIN_VERSION = "1.1.0"
KERNELS_MIN_VERSION = "0.15.2"
KERNELS_MAX_VERSION = "0.16.0"

def is_torch_available() -> bool:
    is_available, torch_version = _is_package_available("torch", return_version=True)
    parsed_version = version.parse(torch_version)
    if is_available and parsed_version < version.parse("2.6.0"):
        logger.warning_once("disabled")
    return is_available and version.parse(torch_version) >= version.parse("2.6.0")

def is_accelerate_available(min_version: str = ACCELERATE_MIN_VERSION) -> bool:
    return is_available and version.parse(accelerate_version) >= version.parse(min_version)

def is_kernels_available(MIN_VERSION=KERNELS_MIN_VERSION, MAX_VERSION=KERNELS_MAX_VERSION) -> bool:
    return version.parse(v) >= version.parse(MIN_VERSION) and version.parse(v) < version.parse(MAX_VERSION)

def is_flash_attn_2_available():
    if torch.version.cuda:
        return version.parse(v) >= version.parse("2.1.0")
    return version.parse(v) >= version.parse("2.3.3")
"""
OLD_IMPORTS = '_torch_available = False\n_torch_available = version.parse(v) >= version.parse("2.1.0")\n'


def sources(imports: str = IMPORTS, check: str = CHECK, **more: str) -> dict[str, str]:
    found = {"dependency_versions_table.py": TABLE, "dependency_versions_check.py": check}
    found["utils/import_utils.py"] = imports
    return {f"transformers/{name}": text for name, text in {**found, **more}.items()}


def test_transformers_tells_minimums_that_its_metadata_does_not():
    facts = transformers.parse_sources(sources())
    assert facts["requires"] == {
        "torch": ">=2.6.0",
        "accelerate": ">=1.1.0",
        "kernels": ">=0.15.2,<0.16.0",
        "flash-attn": ">=2.1.0",
        "numpy": ">=1.17",
        "tokenizers": ">=0.22.0,<=0.23.0",
    }
    assert facts["kind"]["torch"] == "disabled"
    assert facts["kind"]["tokenizers"] == "import"
    assert facts["declared"]["torch"] == ">=2.1,<2.7"
    assert "Pillow" not in facts["declared"]


def test_older_transformers_wrote_it_otherwise():
    facts = transformers.parse_sources(sources(OLD_IMPORTS, OLD_CHECK))
    assert facts["requires"] == {"torch": ">=2.1.0", "numpy": ">=1.17", "tokenizers": ">=0.22.0,<=0.23.0"}


def test_minimums_that_strike_on_use():
    uses = {
        "integrations/peft.py": 'MIN_PEFT_VERSION = "0.18.0"\n',
        "integrations/deepspeed.py": 'dep_version_check("accelerate")\ndep_version_check("deepspeed")\n',
        "utils/quantization_config.py": (
            "if self.load_in_4bit and not version.parse(importlib.metadata.version('bitsandbytes'))"
            " >= version.parse('0.39.0'):\n    raise ValueError\n"
        ),
    }
    facts = transformers.parse_sources(sources(**uses))
    for name, specifier in {"peft": ">=0.18.0", "deepspeed": ">=0.9.3", "bitsandbytes": ">=0.39.0"}.items():
        assert (facts["requires"][name], facts["kind"][name]) == (specifier, "use")


def test_transformers_source_is_parsed_and_never_run(index: FakeIndex):
    members = {name: text.encode() for name, text in sources(imports="raise SystemExit\n").items()}
    index.add_wheel("transformers", "5.0.0", members=members)
    assert read(index, "transformers", "5.0.0")["requires"]["numpy"] == ">=1.17"


def test_transformers_source_that_is_no_python_is_a_reason(index: FakeIndex):
    index.add_wheel("transformers", "5.0.0", members={"transformers/utils/import_utils.py": b"def ("})
    assert set(read(index, "transformers", "5.0.0")) == {"reason", "source"}


def test_one_wheel_an_architecture_is_chosen_the_newest_ordinary_pythons():
    tags = [f"cp39-cp39-{LINUX}", f"cp313-cp313t-{LINUX}", f"cp312-cp312-{LINUX}", "cp312-cp312-win_amd64"]
    tags += ["cp310-cp310-manylinux2014_aarch64", "cp312-cp312-musllinux_1_2_x86_64"]
    files = [IndexFile(f"demo-1.0-{tag}.whl", "1.0", "") for tag in tags]
    chosen = {arch: file.filename for arch, file in linux_wheels(files).items()}
    assert chosen == {
        "x86_64": f"demo-1.0-cp312-cp312-{LINUX}.whl",
        "aarch64": "demo-1.0-cp310-cp310-manylinux2014_aarch64.whl",
    }
