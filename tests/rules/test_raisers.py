"""Every finding about an error tells whose code raised it, and of which release."""

from __future__ import annotations

import pytest

from envdoctor.diagnosis import diagnose_facts
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste
from envdoctor.rules.raisers import FACT, LAST

SITE = "/opt/env/lib/python3.11/site-packages"


def places(text: str, fact: str = FACT) -> set[str]:
    matrix = load_matrix()
    findings = diagnose_facts(parse_paste(text, "", matrix.lexicon), matrix, complete=False).findings
    return {e.value for finding in findings for e in finding.evidence if e.fact == fact}


def traceback(error: str, *files: str) -> str:
    frames = "".join(f'  File "{file}", line 35, in <module>\n    turn()\n' for file in files)
    return f"Traceback (most recent call last):\n{frames}{error}\n"


@pytest.mark.parametrize(
    "file",
    [
        f"{SITE}/vllm/engine/arg_utils.py",
        r"C:\env\Lib\site-packages\vllm\engine\arg_utils.py",
        "/workspace/vllm/vllm/engine/arg_utils.py",
    ],
)
def test_the_innermost_line_of_a_library_is_named_with_its_release(file: str) -> None:
    text = traceback("GizmoError: it turns no more", "main.py", file, "/usr/lib/python3.11/contextlib.py")
    assert places(f"vllm==0.9.2\n{text}") == {"vllm 0.9.2: arg_utils.py, line 35"}


def test_the_library_that_a_message_names_is_told() -> None:
    error = (
        f"ImportError: {SITE}/sgl_kernel/common_ops.abi3.so: undefined symbol: _ZN5torch3jit17parseSchemaE"
    )
    assert places(f"sgl-kernel==0.1.2\n{error}") == {"sgl-kernel 0.1.2: common_ops.abi3.so"}


def test_a_message_alone_is_told_by_the_release_that_says_it() -> None:
    (place,) = places("ValueError: 'aimv2' is already used by a Transformers config, pick another name.")
    assert place.startswith("transformers 4.28.1 ")
    assert place.endswith("configuration_auto.py")


def test_modules_bound_a_release_that_is_not_told() -> None:
    text = traceback("GizmoError: it turns no more", "main.py", f"{SITE}/vllm/v1/engine/core.py")
    (place,) = places(text)
    assert place.startswith("vllm 0.6.")


def test_a_package_that_runs_where_it_was_built_is_known_by_its_folder() -> None:
    text = traceback(
        "GizmoError: it turns no more", "main.py", "/data/llama_cpp_python/llama_cpp/llama_cpp.py"
    )
    (place,) = places(text)
    assert place.startswith("llama-cpp-python ")
    assert places(traceback("GizmoError: it turns no more", "main.py", "/data/click/mine.py")) == set()


def test_what_cython_compiled_is_known_by_the_module_before_the_function() -> None:
    text = traceback("GizmoError: it turns no more", f"{SITE}/datasets/builder.py").replace(
        "GizmoError", '  File "pyarrow/error.pxi", line 91, in pyarrow.lib.check_status\nGizmoError'
    )
    assert places(f"pyarrow==14.0.1\n{text}") == {"pyarrow 14.0.1: error.pxi, line 91"}


def test_the_script_that_was_started_is_no_library() -> None:
    assert places(traceback("GizmoError: it turns no more", "/home/me/vllm/run.py")) == set()


def test_a_librarys_own_module_that_was_started_is_its_file() -> None:
    started = traceback("GizmoError: it turns no more", "/home/me/LLaMA-Factory/src/llamafactory/launcher.py")
    assert places(f"llamafactory==0.8.4\n{started}") == {"llamafactory 0.8.4: launcher.py, line 35"}


def test_an_error_told_in_a_title_is_placed_by_its_traceback() -> None:
    file = f"{SITE}/peft/tuners/lora/model.py"
    title = f"# ImportError: {SITE}/wheel_cuda.so: undefined symbol: _ZN5torch3jit17parseSchemaE\n\n"
    text = title + traceback("ImportError: " + title[15:60], "main.py", file)
    assert places(f"peft==0.17.0\n{text}") == {"peft 0.17.0: model.py, line 35"}


def test_a_traceback_that_is_cut_off_shows_where_it_was_last() -> None:
    file = f"{SITE}/accelerate/accelerator.py"
    text = f"# NCCL error: unhandled system error\n\n{traceback('', 'main.py', file)}"
    assert places(f"accelerate==1.2.0\n{text}", LAST) == {"accelerate 1.2.0: accelerator.py, line 35"}


def test_words_that_two_libraries_have_are_those_of_the_one_the_other_stands_on() -> None:
    error = "Your setup doesn't support bf16/gpu. You need torch>=1.10, using Ampere GPU with cuda>=11.0"
    (place,) = places(f"ValueError: {error}")
    assert place.startswith("transformers 4.")


def test_where_only_pythons_own_lines_raised_what_they_came_out_through_is_told() -> None:
    inner = traceback(
        "PermissionError: [Errno 13] Permission denied: '/.triton'", "/usr/lib/python3.10/os.py"
    )
    outer = traceback("RuntimeError: it did not load", "main.py", f"{SITE}/vllm/engine/arg_utils.py")
    between = "\nThe above exception was the direct cause of the following exception:\n\n"
    assert "vllm 0.9.2: arg_utils.py, line 35" in places(f"vllm==0.9.2\n{inner}{between}{outer}")


@pytest.mark.parametrize("line", [', line 35, in run\n    turn("x")', ","])
def test_what_is_left_of_a_traceback_is_told_beside_what_a_message_tells(line: str) -> None:
    head = 'Traceback (most recent call last):\n  File "main.py", line 1, in <module>\n    run()\n'
    cut = f'{head}  File "{SITE}/'
    text = (
        f'# RuntimeError: {SITE}/sgl_kernel/a.so: undefined symbol: _ZN5torch3jitE\n\n{cut}peft/x.py"{line}\n'
    )
    assert len(places(text, FACT)) == 1
    (left,) = places(text, LAST)
    assert left.startswith("peft ")


@pytest.mark.parametrize(
    ("file", "package"),
    [("gradio_client/utils.py", "gradio-client "), (f"{SITE}/**gradio_client/utils.py**", "gradio-client ")],
)
def test_shortened_and_emphasised_paths_tell_their_package(file: str, package: str) -> None:
    text = traceback("TypeError: it turns no more", "gradio_app.py", file)
    assert [place.startswith(package) for place in places(text)] == [True]
    assert places(traceback("TypeError: it turns no more", "gradio_app.py", "my_utils/run.py")) == set()


def test_of_errors_that_tell_the_same_the_one_that_came_out_of_a_library_is_placed() -> None:
    said = "ffmpeg was not found but is required to load audio files from filename"
    inner = traceback(f"ValueError: {said}", "/app/core.py", f"{SITE}/transformers/pipelines/audio_utils.py")
    outer = traceback(
        f"core.TranscriptionError: Failed to transcribe audio: {said}",
        f"{SITE}/fastapi/routing.py",
        "/app/core.py",
    )
    (place,) = places(f"transformers==4.46.0\nfastapi==0.115.0\n{inner}\nINFO: 500\n{outer}")
    assert place == "transformers 4.46.0: audio_utils.py, line 35"


@pytest.mark.parametrize(
    ("file", "package"),
    [
        ("/home/u/gizmo/gizmo/trainer/default.py", "gizmo"),
        (r"D:\work\Gizmo\gizmo\default.py", "gizmo"),
        (".../gizmo/renderer/default.py", "gizmo"),
        ("/mnt/mmdetection/mmdet/default.py", "mmdet"),
    ],
)
def test_a_package_that_runs_from_its_own_repository_is_named(file: str, package: str) -> None:
    text = traceback("GizmoError: it turns no more", "main.py", file)
    assert places(text) == {f"{package} of a release that is not told: default.py, line 35"}


def test_a_folder_of_ones_own_is_no_package() -> None:
    assert places(traceback("GizmoError: it turns no more", "/home/u/gizmo/parts/default.py")) == set()


def test_what_lies_below_src_is_the_package_and_no_folder_in_it() -> None:
    said = "TypeError: it turns no more"
    (place,) = places(traceback(said, "run.py", "/app/src/autotrain/trainers/clm.py"))
    assert place.startswith("autotrain-advanced ")
    (place,) = places(traceback(said, "run.py", "/home/me/thing/src/thing/datasets/factory.py"))
    assert place.startswith("thing of a release that is not told")


def test_a_package_in_a_namespace_is_told_with_the_folder_below() -> None:
    (place,) = places(traceback("TypeError: it turns no more", "run.py", f"{SITE}/pyannote/audio/core/io.py"))
    assert place.startswith("pyannote-audio ")
