"""What a build from source lacks or refuses: the package that brings it, and whose time differs."""

from __future__ import annotations

import pytest
from declared import pasted

from envdoctor.findings import Certainty, Finding

TARGET = """CMake Error at vendor/llama.cpp/CMakeLists.txt:725 (target_link_libraries):
  Target "ggml" links to:

      CUDA::cublasLt

  but the target was not found.  Possible reasons include:

    * A find_package call is missing for an IMPORTED target.
"""


@pytest.mark.parametrize(
    ("error", "said", "way"),
    [
        ("ggml-opencl.cpp:8:10: fatal error: 'clblast.h' file not found", "CLBlast", "libclblast-dev"),
        ("x.c:1:10: fatal error: portaudio.h: No such file or directory", "PortAudio", "portaudio19-dev"),
        ("/usr/bin/ld: cannot find -lnuma", "the library numa (-lnuma)", "libnuma-dev"),
        ("CMake Error: Could NOT find Vulkan (missing: Vulkan_LIBRARY)", "CMake's package Vulkan", "glslc"),
        ("Package 'cairo', required by 'virtual:world', not found", "Cairo", "libcairo2-dev"),
        ("The system library `alsa` required by crate `alsa-sys` was not found.", "ALSA", "libasound2-dev"),
        (TARGET, "the CUDA toolkit", "CUDAToolkit_ROOT"),
    ],
)
def test_what_brings_a_missing_library_is_told(error: str, said: str, way: str) -> None:
    found = answered("BUILD-LIBRARY-ABSENT", error)
    assert said in found.summary
    assert way in " ".join(command for one in found.remedies for command in one.commands)
    assert found.certainty is Certainty.LIKELY


@pytest.mark.parametrize(
    ("error", "row"),
    [
        ("a/mul_mat.cpp:103:36: error: cannot convert 'uint32x4_t' to 'uint8x16_t'", "VECTORS"),
        ("C:\\x\\quant.cpp(12): error C3493: 'k' cannot be implicitly captured", "MSVC"),
        ("src/a.cpp:1:5: error: 'uint8_t' does not name a type", "CSTDINT"),
        ("src/a.cpp:1:5: error: 'std::string_view' has not been declared", "STANDARD"),
        ("a.c:3:3: error: 'PyThreadState' has no member named 'use_tracing'", "PYTHON"),
        ("x.cpp:3:4: error: 'class at::Tensor' has no member named 'type'", "TORCH"),
        ('x.cu(12): error: no instance of overloaded function "atomicAdd"', "CUDA-ARCH"),
        ("x.c:9:9: error: 'NPY_OWNDATA' undeclared", "NUMPY"),
        ("src/a.cpp:1:5: error: use of undeclared identifier 'foo'", "SOURCE"),
    ],
)
def test_a_refused_line_of_source_tells_which_side_is_of_another_time(error: str, row: str) -> None:
    found = answered(f"COMPILER-REFUSES-{row}", error)
    assert found.certainty is not Certainty.CERTAIN
    assert found.remedies


def answered(identity: str, text: str) -> Finding:
    return pasted(f"{text}\n")[identity]
