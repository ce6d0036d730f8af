"""Pages of an index: JSON and HTML say the same, and hostile ones are refused or trimmed."""

from __future__ import annotations

import json

import pytest
from fake_index import FakeFile, FakeIndex, Fault

from envdoctor.errors import Unavailable
from envdoctor.fetch import Fetched, NotFound
from envdoctor.harvest.index_pages import (
    checked_name,
    parse_page,
    parse_project_json,
    project_json_url,
    read_listing,
    read_project_page,
    release_of,
)

URL = "http://127.0.0.1/simple/demo/"


def page(body: str | dict, kind: str = "text/html"):
    text = json.dumps(body) if isinstance(body, dict) else body
    return parse_page("demo", Fetched(URL, text.encode(), kind))


def json_page(*files: dict, **more):
    return page({"name": "demo", "files": list(files), **more}, "application/vnd.pypi.simple.v1+json")


def entry(filename: str, **more) -> dict:
    return {"filename": filename, "url": f"../../files/{filename}", "hashes": {}, **more}


@pytest.mark.parametrize("style", ["json", "html"])
def test_both_kinds_of_page_tell_the_same(index: FakeIndex, style):
    index.style = style
    index.add_wheel("demo", "1.0", requires_python=">=3.9,<4", yanked=True)
    index.add_wheel("demo", "1.10")
    index.add_wheel("demo", "1.9")
    with index.fetcher() as fetcher:
        read = read_project_page(fetcher, index.url, "Demo")
    assert read is not None
    assert list(read.releases()) == ["1.0", "1.9", "1.10"]
    (first,) = read.releases()["1.0"]
    assert (first.requires_python, first.yanked, first.is_wheel) == (">=3.9,<4", True, True)
    assert first.url == f"{index.base}/files/demo-1.0-py3-none-any.whl"
    assert len(first.sha256 or "") == 64


def test_upload_times_and_sizes_come_from_the_project_when_the_page_lacks_them(index: FakeIndex):
    index.style = "html"
    file = index.add_wheel("demo", "1.0")
    known = {
        "filename": file.filename,
        "digests": file.entry("")["hashes"],
        "size": 77,
        "upload_time_iso_8601": "2024-05-06T07:08:09.123456Z",
    }
    index.pages["/pypi/demo/json"] = ("application/json", json.dumps({"releases": {"1.0": [known]}}).encode())
    with index.fetcher() as fetcher:
        read = read_project_page(fetcher, index.url, "demo")
    assert read is not None
    assert (read.files[0].size, read.files[0].uploaded) == (77, "2024-05-06T07:08:09Z")


def test_a_project_json_of_other_files_is_not_believed(index: FakeIndex):
    index.style = "html"
    file = index.add_wheel("demo", "1.0")
    lie = {"filename": file.filename, "digests": {"sha256": "0" * 64}, "size": 77}
    index.pages["/pypi/demo/json"] = ("application/json", json.dumps({"releases": {"1.0": [lie]}}).encode())
    with index.fetcher() as fetcher:
        read = read_project_page(fetcher, index.url, "demo")
    assert read is not None
    assert read.files[0].size is None


def test_an_unchanged_page_is_not_read_again(index: FakeIndex):
    index.add_wheel("demo", "1.0")
    with index.fetcher() as fetcher:
        first = read_project_page(fetcher, index.url, "demo")
        assert first is not None
        assert read_project_page(fetcher, index.url, "demo", first.etag) is None


def test_a_local_folder_is_an_index_too(tmp_path, index: FakeIndex):
    (tmp_path / "simple" / "demo").mkdir(parents=True)
    (tmp_path / "simple" / "demo" / "index.html").write_text(
        '<html><body><a href="../../demo-1.0-py3-none-any.whl">x</a></body></html>'
    )
    with index.fetcher() as fetcher:
        read = read_project_page(fetcher, (tmp_path / "simple").as_uri(), "demo")
    assert read is not None
    assert read.files[0].url == (tmp_path / "demo-1.0-py3-none-any.whl").as_uri()


def test_files_of_other_kinds_and_projects_are_left_out_and_counted():
    read = json_page(
        entry("demo-1.0-py3-none-any.whl"),
        entry("demo-1.0.tar.gz"),
        entry("demo-1.0-py2.7.egg"),
        entry("other-1.0-py3-none-any.whl"),
        entry("demo-not.a.version-py3-none-any.whl"),
        {"filename": 3, "url": None},
        entry("demo-2.0-py3-none-any.whl", url="javascript:alert(1)"),
        entry("demo-3.0-py3-none-any.whl", url="file:///etc/passwd"),
        entry("demo-4.0-py3-none-any.whl", url="http://[bad"),
        entry("d" * 400 + ".whl"),
    )
    assert [file.filename for file in read.files] == ["demo-1.0-py3-none-any.whl", "demo-1.0.tar.gz"]
    assert read.left_out == 8


def test_fields_of_wrong_types_are_unknown_not_fatal():
    odd = entry(
        "demo-1.0.tar.gz",
        hashes={"sha256": "../../x"},
        **{"requires-python": 3, "upload-time": "yesterday", "size": -1, "yanked": "", "core-metadata": True},
    )
    (file,) = json_page(odd).files
    assert (file.sha256, file.requires_python, file.uploaded, file.size) == (None, None, None, None)
    assert file.yanked
    assert file.metadata_sha256 == ""


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("", "neither HTML nor JSON"),
        ("Service temporarily out of order", "neither HTML nor JSON"),
        ("<html><body><a href='demo-1.0.tar.gz'>", "ends too early"),
        ("<p>Log in to the hotel's network</p>", "ends too early"),
        ('{"files": [', "malformed"),
        ('{"files": {}}', "malformed"),
        ('{"files": [1]}', "malformed"),
        ('{"name": 3, "files": []}', "malformed"),
        ("[" * 100_000, "neither HTML nor JSON"),
        ('{"files": ' + "[" * 100_000, "malformed"),
        ('{"name": "other", "files": []}', "another project"),
    ],
)
def test_a_page_that_makes_no_sense_is_refused(body, reason):
    with pytest.raises(Unavailable, match=reason):
        page(body)


def test_a_page_of_anothers_files_is_refused():
    with pytest.raises(Unavailable, match="none of its files belongs to demo"):
        json_page(entry("evil-1.0.tar.gz"))


def test_a_page_that_is_not_text_is_refused():
    with pytest.raises(Unavailable, match="not text"):
        parse_page("demo", Fetched(URL, b"\xff\xfe\x00", "text/html"))


def test_a_project_that_is_not_there(index: FakeIndex):
    with index.fetcher() as fetcher, pytest.raises(NotFound):
        read_project_page(fetcher, index.url, "demo")


def test_a_page_cut_short_on_its_way_is_unavailable(index: FakeIndex):
    index.add_wheel("demo", "1.0")
    index.faults["/simple/demo/"] = Fault(truncated=True)
    with index.fetcher() as fetcher, pytest.raises(Unavailable):
        read_project_page(fetcher, index.url, "demo")


@pytest.mark.parametrize("name", ["../etc", "a/b", "", "-", "x" * 200, "a b", "a\n"])
def test_what_cannot_name_a_package_is_refused(name):
    with pytest.raises(Unavailable, match="is not the name of a package"):
        checked_name(name)


def test_names_are_canonical():
    assert checked_name("Flash_Attn.4") == "flash-attn-4"


@pytest.mark.parametrize(
    ("filename", "version"),
    [
        ("demo-1.0rc1-cp39-abi3-manylinux_2_28_x86_64.whl", "1.0rc1"),
        ("demo-1.0.post1.tar.gz", "1.0.post1"),
        ("demo-01.0.zip", "1.0"),
        ("demo-1.0-1-py3-none-any.whl", "1.0"),
        ("demo-1.0-py3-none.whl", None),
        ("demo-.tar.gz", None),
        ("Demo-1.0.exe", None),
    ],
)
def test_versions_come_from_file_names(filename, version):
    assert release_of("demo", filename) == version


def test_where_the_json_of_a_project_lies():
    assert project_json_url("https://h/root/simple/", "demo") == "https://h/root/pypi/demo/json"
    assert project_json_url("https://h/simple", "demo", "1.0") == "https://h/pypi/demo/1.0/json"
    assert project_json_url("https://h/api/npm", "demo") is None
    assert project_json_url("file:///x/simple", "demo") is None


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"releases": 3}', b'{"releases": {"1": [{}]}}', b"[" * 100_000]
)
def test_a_senseless_project_json_tells_nothing(body):
    assert parse_project_json(body) == {}


def test_a_repeated_file_counts_once():
    read = json_page(entry("demo-1.0.tar.gz"), entry("demo-1.0.tar.gz", size=5))
    assert [file.size for file in read.files] == [5]


def test_plus_in_a_local_version_survives_quoting():
    read = page('<html><a href="demo-1.0%2Bcu126-py3-none-any.whl">x</a></html>')
    assert [file.version for file in read.files] == ["1.0+cu126"]


def test_files_without_hash_or_time_are_kept(index: FakeIndex):
    index.add("demo", FakeFile("demo-1.0.tar.gz", b"", uploaded=None))
    with index.fetcher() as fetcher:
        read = read_project_page(fetcher, index.url, "demo")
    assert read is not None
    assert read.files[0].uploaded is None


@pytest.mark.parametrize("style", ["json", "html"])
def test_one_release_is_picked_from_a_listing_however_its_files_spell_it(index: FakeIndex, style):
    index.style = style
    for version in ("1.0", "1.10", "1.0.post1", "2024.01.02"):
        index.add_wheel("demo", version)
    with index.fetcher() as fetcher:
        listing = read_listing(fetcher, index.url, "Demo")
    assert [file.version for file in listing.release("1.0")] == ["1.0"]
    assert len(listing.release("2024.1.2")) == 1
    assert listing.release("3.0") == ()
