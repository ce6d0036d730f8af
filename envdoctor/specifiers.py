"""packaging's specifiers, loaded without what its wheel tags need: that takes longer than all the rest."""

from envdoctor.late import import_late

import_late("packaging.tags", "logging", "platform", "subprocess", "sysconfig")

from packaging.specifiers import InvalidSpecifier, Specifier, SpecifierSet  # noqa: E402

__all__ = ["InvalidSpecifier", "Specifier", "SpecifierSet"]
