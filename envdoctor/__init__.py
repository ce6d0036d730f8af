"""Says what is wrong with a GPU machine's LLM stack, and which pins, profile and proof mend it."""

# Nothing is imported here: this runs before the front door has put the import path in order.
__version__ = "0.1.0"
__all__ = [
    "Bundle",
    "CheckResult",
    "Diagnosis",
    "EnvdoctorError",
    "Evidence",
    "Facts",
    "Finding",
    "Fixed",
    "Gpu",
    "InputError",
    "Observed",
    "PinSet",
    "Prediction",
    "Profile",
    "Remedy",
    "Severity",
    "SmokeReport",
    "StatedRun",
    "Unavailable",
    "Unknown",
    "Upgrade",
    "WhyNot",
    "__version__",
    "bundle",
    "choose_profile",
    "diagnose",
    "diagnose_facts",
    "fix",
    "make_bundle",
    "parse",
    "pin",
    "predict",
    "probe",
    "read",
    "smoke",
    "upgrade",
    "why_not",
]

_HOMES = {
    "api": "bundle choose_profile fix make_bundle parse pin predict probe read smoke upgrade why_not",
    "bundling": "Bundle",
    "diagnosis": "diagnose diagnose_facts",
    "errors": "EnvdoctorError InputError Unavailable",
    "facts": "Facts Gpu Observed Unknown",
    "fixing.fixing": "Fixed",
    "findings": "CheckResult Diagnosis Evidence Finding Remedy Severity",
    "memory": "Prediction",
    "memory.stated": "StatedRun",
    "profile.choosing": "Profile",
    "smokes": "SmokeReport",
    "solve.answer": "PinSet",
    "solve.pinning": "WhyNot",
    "upgrading.upgrading": "Upgrade",
}
"""The room of each public name."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envdoctor.api import (
        bundle,
        choose_profile,
        fix,
        make_bundle,
        parse,
        pin,
        predict,
        probe,
        read,
        smoke,
        upgrade,
        why_not,
    )
    from envdoctor.bundling import Bundle
    from envdoctor.diagnosis import diagnose, diagnose_facts
    from envdoctor.errors import EnvdoctorError, InputError, Unavailable
    from envdoctor.facts import Facts, Gpu, Observed, Unknown
    from envdoctor.findings import CheckResult, Diagnosis, Evidence, Finding, Remedy, Severity
    from envdoctor.fixing.fixing import Fixed
    from envdoctor.memory import Prediction
    from envdoctor.memory.stated import StatedRun
    from envdoctor.profile.choosing import Profile
    from envdoctor.smokes import SmokeReport
    from envdoctor.solve.answer import PinSet
    from envdoctor.solve.pinning import WhyNot
    from envdoctor.upgrading.upgrading import Upgrade


def __getattr__(name: str) -> object:
    """Load what stands in `__all__` when it is first asked for."""
    home = next((room for room, names in _HOMES.items() if name in names.split()), None)
    if home is None:
        raise AttributeError(f"module 'envdoctor' has no attribute {name!r}")
    import importlib

    found: object = getattr(importlib.import_module(f"envdoctor.{home}"), name)
    return found


def load_ipython_extension(shell: object) -> None:
    """Give a notebook `%envdoctor`; called by `%load_ext envdoctor`."""
    from envdoctor.notebook import register

    register(shell)


def __dir__() -> list[str]:
    return sorted(__all__)
