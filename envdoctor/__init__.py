"""Says what is wrong with a GPU machine's LLM stack, and which pins, profile and proof mend it."""

# Nothing is imported here: this runs before the front door has put the import path in order.
__version__ = "0.1.0"
__all__ = ["__version__", "bundle", "diagnose", "diagnose_facts"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envdoctor.library import bundle, diagnose, diagnose_facts


def __getattr__(name: str) -> object:
    """Load the library's functions when they are first asked for."""
    if name in ("bundle", "diagnose", "diagnose_facts"):
        from envdoctor import library

        found: object = getattr(library, name)
        return found
    raise AttributeError(f"module 'envdoctor' has no attribute {name!r}")
