"""Damage that the environment's own files show is told, with what to type."""

from __future__ import annotations

from declared import found

from envdoctor.facts import Distribution, Environment, Facts


def facts(*problems: str, **damaged: str) -> Facts:
    """Return facts of an environment with these problems, and packages damaged in that way."""
    packages = {n: Distribution(n, "probe", version="1.0", problems=(text,)) for n, text in damaged.items()}
    told = tuple(f"{name}: {text}" for name, text in damaged.items())
    return Facts(environment=Environment(distributions=packages, problems=(*problems, *told)))


def test_an_interpreter_that_is_gone_is_an_error():
    text = "the interpreter that this virtual environment was made from is gone: /opt/python"
    finding = found(facts(text))["INTERPRETER-GONE"]
    assert finding.severity.value == "error"
    assert finding.evidence[0].value == text


def test_packages_that_are_not_whole_are_installed_again():
    findings = found(facts(torch="its module torch is missing", numpy="holds no RECORD"))
    assert set(findings) & {"INSTALL-DAMAGED", "INSTALL-ODD"} == {"INSTALL-DAMAGED"}
    command = "pip install --force-reinstall --no-deps torch==1.0 numpy==1.0"
    assert findings["INSTALL-DAMAGED"].remedies[0].commands == (command,)


def test_leftovers_and_doubles_are_worth_a_note():
    assert found(facts("left behind: ~orch"))["INSTALL-ODD"].severity.value == "note"


def test_a_sound_environment_has_none_of_it():
    sound = Facts(environment=Environment(distributions={"numpy": Distribution("numpy", "x", version="1.0")}))
    assert not {name for name in found(sound) if name.startswith(("INSTALL", "INTERPRETER"))}
