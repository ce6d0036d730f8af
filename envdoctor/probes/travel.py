"""The probes packed into one file that runs wherever Python 3.8 or later does."""

from __future__ import annotations

import os
import zipfile

from .files import list_names
from .typed import BinaryIO, Union

PACKAGE = "envdoctor_probes"
EPOCH = (1980, 1, 1, 0, 0, 0)
MAIN = """import os
import sys

if sys.version_info < (3, 8):
    sys.exit("probe: Python 3.8 or later is needed, this is %d.%d" % sys.version_info[:2])
told = os.environ.get("PYTHONPATH")
foreign = [os.path.abspath(path) for path in told.split(os.pathsep)] if told else []
own = (os.path.dirname(os.path.abspath(__file__)), os.path.dirname(os.__file__))
sys.path[:] = [path for path in sys.path if path in own or os.path.abspath(path) not in foreign]
from envdoctor_probes.__main__ import main

os._exit(main())
"""


def build_zipapp(path: "Union[str, BinaryIO]") -> None:
    """Write the probes as one runnable file, the same bytes each time; raises OSError."""
    folder = os.path.dirname(os.path.abspath(__file__))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, "__main__.py", MAIN)
        for name in list_names(folder):
            if name.endswith(".py"):
                with open(os.path.join(folder, name), encoding="utf-8") as stream:
                    _add(archive, "%s/%s" % (PACKAGE, name), stream.read())


def _add(archive: zipfile.ZipFile, name: str, text: str) -> None:
    entry = zipfile.ZipInfo(name, EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, text)
