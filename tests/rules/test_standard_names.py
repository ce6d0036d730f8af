"""Names of Python's own library: which versions and systems have what an error line misses."""

from __future__ import annotations

import pytest
from declared import pasted

from envdoctor.findings import Finding


@pytest.mark.parametrize(
    ("error", "said", "way"),
    [
        ("ModuleNotFoundError: No module named 'pwd'", "Linux and macOS (Unix, POSIX) only", "WSL 2"),
        ("AttributeError: module 'os' has no attribute 'startfile'", "on Windows only", "leave out"),
        ("ModuleNotFoundError: No module named 'zoneinfo'", "came with Python 3.9", "--python 3.12"),
        ("AttributeError: module 'ast' has no attribute 'Str'", "since Python 3.14", "--python 3.13"),
        ("AttributeError: 'str' object has no attribute 'removeprefix'", "came with Python 3.9", "older"),
        ("TypeError: dataclass() got an unexpected keyword argument 'slots'", "Python 3.10", "3.10 or newer"),
        ("TypeError: zip() takes no keyword arguments", "zip(strict) came with Python 3.10", "newer"),
    ],
)
def test_the_python_or_system_that_has_a_name_is_told(error: str, said: str, way: str) -> None:
    found = answered(f'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n{error}\n')
    assert said in found.summary
    assert way in " ".join(part for one in found.remedies for part in (one.text, *one.commands))


def test_the_package_that_asks_is_the_one_to_move() -> None:
    frame = 'File "/venv/lib/python3.11/site-packages/transformers/x.py", line 1, in <module>\n    import pwd'
    found = answered(
        f"Traceback (most recent call last):\n  {frame}\nModuleNotFoundError: No module named 'pwd'\n"
    )
    assert found.remedies[0].commands == ("pip install -U transformers",)


def test_a_python_that_has_the_name_is_not_to_blame() -> None:
    text = "Python version: 3.12.3\nAttributeError: module 'asyncio' has no attribute 'timeout'\n"
    assert "PYTHON-LIBRARY" not in pasted(text)


def answered(text: str) -> Finding:
    return pasted(text)["PYTHON-LIBRARY"]
