"""What a setup chooses by what is installed is taken as a build in isolation finds it."""

from envdoctor.harvest.setup_choices import as_built_alone

PAIRS = """
from pkg_resources import DistributionNotFound, get_distribution
CHOICES = [(("opencv-python>=4.1.1", "opencv-contrib-python>=4.1.1"), "opencv-python-headless>=4.1.1")]
SIZES = [("small", 1)]
"""
ALTERNATIVES = """
from importlib.metadata import PackageNotFoundError
ALTERNATIVES = {"opencv-python-headless": ["opencv-python", "opencv-contrib-python"]}
KEYS = {"a": "b"}
"""


def test_last_choice_is_left_where_nothing_is_installed() -> None:
    asked = ["numpy>=1.11", "opencv-python>=4.1.1"]
    assert as_built_alone(asked, PAIRS) == ["numpy>=1.11", "opencv-python-headless>=4.1.1"]
    assert as_built_alone(["opencv-contrib-python"], ALTERNATIVES) == ["opencv-python-headless"]


def test_record_stands_where_setup_looks_for_nothing() -> None:
    asked = ["opencv-python>=4.1.1"]
    assert as_built_alone(asked, PAIRS.replace("DistributionNotFound", "x")) == asked
    assert as_built_alone(asked, PAIRS + "print 'python 2'") == asked
    assert as_built_alone(["a ; python_version < '3'"], PAIRS) == ["a ; python_version < '3'"]
