"""Reading from a network: retries, limits, ranges, and one clear line for whatever goes wrong."""

from __future__ import annotations

import pytest
from fake_index import FakeIndex, Fault

from envdoctor.errors import Unavailable
from envdoctor.fetch import Fetcher, FetchSettings, NotFound, TooLarge, retry_after
from envdoctor.probes.urls import plain_url

PATH = "/files/a.bin"
BODY = bytes(range(256)) * 64


@pytest.fixture
def url(index: FakeIndex) -> str:
    index.pages[PATH] = ("application/octet-stream", BODY)
    return f"{index.base}{PATH}"


def test_a_body_comes_whole_with_its_etag(index, url):
    with index.fetcher() as fetcher:
        fetched = fetcher.get(url)
    assert fetched.body == BODY
    assert fetched.etag


def test_an_etag_saves_the_body(index, url):
    with index.fetcher() as fetcher:
        again = fetcher.get(url, etag=fetcher.get(url).etag)
    assert again.not_modified
    assert again.body == b""


def test_what_is_not_there_is_said_at_once(index, url):
    with index.fetcher() as fetcher, pytest.raises(NotFound, match=r"/files/other: not there \(404\)"):
        fetcher.get(f"{index.base}/files/other")
    assert index.paths() == ["/files/other"]


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_passing_failure_is_tried_again(index, url, status):
    index.faults[PATH] = Fault(status=status, times=1)
    with index.fetcher() as fetcher:
        assert fetcher.get(url).body == BODY


def test_a_lasting_failure_is_unavailable(index, url):
    index.faults[PATH] = Fault(status=503)
    with index.fetcher(tries=3) as fetcher, pytest.raises(Unavailable, match=r"answered 503 \(3 tries\)"):
        fetcher.get(url)
    assert len(index.requests) == 3


def test_a_refusal_is_not_tried_again(index, url):
    index.faults[PATH] = Fault(status=403)
    with index.fetcher() as fetcher, pytest.raises(Unavailable, match="answered 403"):
        fetcher.get(url)
    assert len(index.requests) == 1


def test_retry_after_is_obeyed(index, url):
    waits: list[float] = []
    index.faults[PATH] = Fault(status=429, headers={"Retry-After": "7"}, times=1)
    with Fetcher(FetchSettings(), sleep=waits.append) as fetcher:
        fetcher.get(url)
    assert waits == [7.0]


def test_a_wait_beyond_patience_ends_the_call(index, url):
    index.faults[PATH] = Fault(status=429, headers={"Retry-After": "3600"})
    with index.fetcher() as fetcher, pytest.raises(Unavailable, match="asks to wait 3600 s"):
        fetcher.get(url)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("5", 5.0),
        ("-3", 0.0),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 90.0),
        ("soon", None),
        (None, None),
        ("", None),
    ],
)
def test_retry_after_is_a_number_or_a_date(value, seconds):
    assert retry_after(value, now=10.0) == seconds


def test_half_a_body_is_unavailable(index, url):
    index.faults[PATH] = Fault(truncated=True)
    with index.fetcher() as fetcher, pytest.raises(Unavailable, match="the transfer broke off"):
        fetcher.get(url)


def test_a_silent_server_is_given_up(index, url):
    index.faults[PATH] = Fault(silent=True)
    with index.fetcher(timeout=0.1) as fetcher, pytest.raises(Unavailable, match="no answer in time"):
        fetcher.get(url)


def test_a_server_that_is_down_is_unavailable(index, url):
    index.close()
    with index.fetcher() as fetcher, pytest.raises(Unavailable, match="cannot be reached"):
        fetcher.get(url)


def test_a_transfer_has_a_deadline(index, url):
    ticks = iter(range(0, 1000, 100))
    slow = Fetcher(FetchSettings(deadline=50), clock=lambda: next(ticks))
    with slow as fetcher, pytest.raises(Unavailable, match="not finished after 50 s"):
        fetcher.get(url)


def test_a_body_past_its_cap_is_refused(index, url):
    with index.fetcher() as fetcher, pytest.raises(TooLarge, match="larger than the 100 bytes"):
        fetcher.get(url, cap=100)


def test_a_compressed_bomb_is_capped_by_what_it_unpacks_to(index):
    index.pages["/bomb"] = ("text/html", b"\0" * 5_000_000)
    with index.fetcher() as fetcher, pytest.raises(TooLarge):
        fetcher.get(f"{index.base}/bomb", cap=1_000_000)


def test_a_redirect_loop_ends(index, url):
    index.faults[PATH] = Fault(status=302, headers={"Location": PATH})
    with index.fetcher() as fetcher, pytest.raises(Unavailable):
        fetcher.get(url)


@pytest.mark.parametrize("url_", ["ftp://127.0.0.1/x", "http://[::bad", "http://"])
def test_an_unusable_url_is_unavailable(url_):
    with Fetcher(FetchSettings(tries=1)) as fetcher, pytest.raises(Unavailable):
        fetcher.get(url_)


def test_a_range_is_read_from_either_end(index, url):
    with index.fetcher() as fetcher:
        head = fetcher.get_range(url, 10, 5)
        tail = fetcher.get_range(url, -7, 7)
    assert (head.body, head.start, head.total) == (BODY[10:15], 10, len(BODY))
    assert (tail.body, tail.start) == (BODY[-7:], len(BODY) - 7)


def test_a_server_without_ranges_is_found_out(index, url):
    index.ranges = False
    with index.fetcher() as fetcher, pytest.raises(Unavailable, match="does not serve parts"):
        fetcher.get_range(url, 0, 5)


def test_a_stream_stops_when_its_reader_has_enough(index, url):
    with index.fetcher() as fetcher, fetcher.stream(url, 100, 200) as chunks:
        assert b"".join(chunks) == BODY[100:300]


def test_a_broken_stream_is_unavailable(index, url):
    index.faults[PATH] = Fault(truncated=True)
    with (
        index.fetcher() as fetcher,
        pytest.raises(Unavailable, match="broke off"),
        fetcher.stream(url) as chunks,
    ):
        list(chunks)


def test_local_files_are_read_like_the_rest(tmp_path):
    (tmp_path / "index.html").write_text("<html></html>")
    (tmp_path / "a.bin").write_bytes(BODY)
    with Fetcher() as fetcher:
        assert fetcher.get(tmp_path.as_uri()).body == b"<html></html>"
        assert fetcher.get_range((tmp_path / "a.bin").as_uri(), -3, 3).body == BODY[-3:]
        with fetcher.stream((tmp_path / "a.bin").as_uri(), 5, 5) as chunks:
            assert b"".join(chunks) == BODY[5:10]
        with pytest.raises(NotFound):
            fetcher.get((tmp_path / "none").as_uri())


def test_credentials_are_never_shown(index, url):
    secret = url.replace("http://", "http://user:s3cret@")
    index.faults[PATH] = Fault(status=403)
    with index.fetcher() as fetcher, pytest.raises(Unavailable) as raised:
        fetcher.get(f"{secret}?token=s3cret")
    assert "s3cret" not in str(raised.value)
    assert plain_url("https://a:b@host/x?y#z") == "https://host/x"


def test_certificates_that_cannot_be_read_are_named(tmp_path):
    settings = FetchSettings(certificates=str(tmp_path / "none.pem"))
    with (
        Fetcher(settings) as fetcher,
        pytest.raises(Unavailable, match=r"none\.pem: the certificates cannot be read"),
    ):
        fetcher.get("https://127.0.0.1:9/")
