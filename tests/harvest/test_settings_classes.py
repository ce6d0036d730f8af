"""What a release's settings classes take: read from a few lines of each kind that frameworks write."""

from __future__ import annotations

import textwrap

import pytest
from config_fields import read_keys
from frameworks import Framework
from release_sources import Sources
from settings_classes import Keys
from settings_syntax import Unparsable


def keys_of(files: dict[str, str], **options: object) -> Keys:
    """Read the classes `*Arguments` of `app/args.py` among these files."""
    bodies = {path: textwrap.dedent(text).encode() for path, text in files.items()}
    framework = Framework("app", "0", (("app/args.py", "*Arguments"),), **options)  # type: ignore[arg-type]
    return read_keys(Sources(bodies.keys(), bodies.__getitem__), framework).keys


def test_fields_are_keys_and_private_filled_in_and_class_variables_are_not() -> None:
    found = keys_of(
        {
            "app/args.py": """
                class RunArguments:
                    steps: int = 1
                    rate: float = field(default=1e-4, metadata={"aliases": ["--learning-rate"]})
                    device: str = field(init=False)
                    kind: ClassVar[str] = "run"
                    _hidden: int = 0
                class Other:
                    unrelated: int = 1
                """
        }
    )
    assert found == Keys(frozenset({"steps", "rate", "learning_rate"}))


def test_bases_are_followed_through_imports_and_both_branches_of_a_condition() -> None:
    found = keys_of(
        {
            "app/args.py": """
                from .mixins import Fp8 as F
                from app import extras
                if NEW:
                    from other_trainer import Base as Upstream
                else:
                    from transformers import TrainingArguments as Upstream
                Base = Upstream
                class RunArguments(F, extras.Ray, Base):
                    steps: int = 1
                """,
            "app/mixins.py": "from .deep import *\n",
            "app/deep.py": "class Fp8:\n    fp8: bool = False\n",
            "app/extras/__init__.py": "from app.extras.ray import Ray\n",
            "app/extras/ray.py": "class Ray(object):\n    workers: int = 1\n",
        }
    )
    assert found.paths == {"steps", "fp8", "workers"}
    assert {str(base) for base in found.outside} == {"other_trainer:Base"}, (
        "transformers' keys are read there"
    )


def test_a_class_as_type_is_a_section_and_a_mapping_may_hold_anything() -> None:
    found = keys_of(
        {
            "app/args.py": """
                from enum import Enum
                from typing import Annotated, Any
                class Kind(str, Enum):
                    a = "a"
                class Data:
                    path: str
                    kind: Kind | None = None
                class Loose(Data):
                    model_config = ConfigDict(extra="allow")
                class RunArguments(BaseModel):
                    datasets: Annotated[list[Data], MinLen(1)] | None = None
                    other: "Data | dict[str, Any]" = None
                    loose: Loose | None = None
                """
        }
    )
    assert found.paths == {"datasets", "datasets.path", "datasets.kind", "other", "loose"}


def test_names_that_a_validator_takes_out_are_taken_and_those_it_only_looks_at_are_not() -> None:
    found = keys_of(
        {
            "app/args.py": """
                class RunArguments(BaseModel):
                    new: int = Field(validation_alias=AliasChoices("new", "newer"))
                    @model_validator(mode="before")
                    def rename(cls, data):
                        if "old" in data:
                            data["new"] = data.get("old")
                        older = data.pop("older", None)
                        if data.get("removed"):
                            raise ValueError("removed is no more")
                        return data
                    def unrelated(self, data):
                        return data.pop("nothing")
                """
        }
    )
    assert found.paths == {"new", "newer", "old", "older"}


def test_options_and_constants_count_where_asked_and_a_flat_framework_keeps_leaves() -> None:
    files = {
        "app/args.py": """
            BATCH = "train_batch_size"
            HELP = "two words"
            class Inner:
                stage: int = 0
            class RunArguments:
                zero: Inner = None
            """,
        "app/launch.py": 'parser.add_argument("--num-processes", "-n", type=int)\n',
    }
    found = keys_of(files, parsers=("app/launch.py",), words=("app/args.py",), flat=True)
    assert found.paths == {"train_batch_size", "stage", "zero", "num_processes"}


def test_a_module_that_cannot_be_parsed_leaves_the_release_unread() -> None:
    with pytest.raises(Unparsable, match=r"app/args\.py"):
        keys_of({"app/args.py": "class {"})
