"""The types of the rows, one file a subject, each read when one of its types is first named.

Write `from envdoctor.matrix import tables` and `tables.GpuRow`: a diagnosis needs few of them, and making a
type takes time. Their annotations are read at run time, so they are no texts.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from envdoctor.matrix.tables.cards import *  # noqa: F403
    from envdoctor.matrix.tables.conditions import *  # noqa: F403
    from envdoctor.matrix.tables.driver import *  # noqa: F403
    from envdoctor.matrix.tables.extensions import *  # noqa: F403
    from envdoctor.matrix.tables.fleet import *  # noqa: F403
    from envdoctor.matrix.tables.lexicon import *  # noqa: F403
    from envdoctor.matrix.tables.memory import *  # noqa: F403
    from envdoctor.matrix.tables.names import *  # noqa: F403
    from envdoctor.matrix.tables.packages import *  # noqa: F403
    from envdoctor.matrix.tables.secrets import *  # noqa: F403
    from envdoctor.matrix.tables.settings import *  # noqa: F403
    from envdoctor.matrix.tables.smokes import *  # noqa: F403
    from envdoctor.matrix.tables.torch import *  # noqa: F403
    from envdoctor.matrix.tables.trackers import *  # noqa: F403

SUBJECTS = {
    "cards": "GpuStateRow XidRow HardwareFeatureRow",
    "conditions": "RowRemedy ConditionRow",
    "driver": "CudaDriverRow DriverArchitectureRow DriverBranchRow",
    "extensions": "ExtensionRow TorchSymbolRow TorchPairRow CompanionRow FlashAttnWheelRow TorchBuildRow "
    "DeepspeedCudaRow PackageCapabilityRow CudaBuildRow BuildLibraryRow",
    "fleet": "AgreementRow FleetFactRow FleetPackageRow FleetVariableRow FleetMixtureRow FleetStandardRow",
    "lexicon": "SymptomRow TellingRow ConsequenceRow PlaceRow ReachedRow ShownRow DetourRow OptionRow "
    "ProgramRow SayingRow KeyRow FrameworkRow PackageNameRow ArchitectureRow GpuRow",
    "memory": "MemoryRow TrainerRow OptimizerRow ModelRow TextPartRow TowerRow SeeingModelRow SpeedRow "
    "StaticShareRow ScaledRow",
    "names": "AttributeRow CalledRow GeneratedRow ImportNameRow OwnModuleRow RenameRow SharedFolderRow "
    "SubmoduleRow TakenRow",
    "packages": "PackageRow StackRoleRow PackageTraitRow",
    "secrets": "SecretFormatRow SecretWordRow",
    "settings": "SettingRow RenamedRow",
    "smokes": "SmokeCauseRow SmokeClaimRow CardSpeedRow SpeedShareRow",
    "torch": "TorchCapabilityRow TorchFollowerRow TorchPlatformRow TorchVariantRow",
    "trackers": "TemplateField TrackerRow",
}
"""The types by the file that they are in."""
_HOMES = {name: subject for subject, names in SUBJECTS.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"no type of row is called {name}")
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
