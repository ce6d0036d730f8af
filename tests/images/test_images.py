"""Saved images: layers in order, whiteouts, both layouts; bombs and broken files refused in one line."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from envdoctor.cli import main
from envdoctor.errors import InputError
from envdoctor.images import archive
from envdoctor.images.environment import read_image

SITE = "usr/local/lib/python3.11/site-packages"
PATH = "PATH=/usr/local/bin:/usr/bin:/bin"
Layer = Mapping[str, str | None]
"""Contents by path; None is a link to `python3.11`."""


def metadata(name: str, version: str, *requires: str) -> dict[str, str]:
    lines = [f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {one}" for one in requires)]
    return {f"{SITE}/{name}-{version}.dist-info/METADATA": "\n".join(lines) + "\n\nText\n"}


BASE: Layer = {
    "usr/local/bin/python3.11": "",
    "usr/local/bin/python3": None,
    "etc/os-release": 'ID=ubuntu\nVERSION_ID="22.04"\n',
    "var/lib/dpkg/status": "Package: libc6\nStatus: ok\nVersion: 2.35-0ubuntu3\n",
    "usr/local/cuda-12.4/version.json": '{"cuda": {"name": "CUDA", "version": "12.4.1"}}',
    "usr/local/cuda-12.4/bin/nvcc": "",
    **metadata("torch", "2.4.0", "numpy"),
    **metadata("numpy", "1.26.4"),
    f"{SITE}/torch/version.py": "__version__ = '2.4.0+cu124'\ncuda: str = '12.4'\n",
}


def tar(files: Layer) -> bytes:
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w", format=tarfile.PAX_FORMAT) as out:
        for path, text in files.items():
            info = tarfile.TarInfo(path)
            if text is None:
                info.type, info.linkname = tarfile.SYMTYPE, "python3.11"
            else:
                info.size = len(text.encode())
            out.addfile(info, io.BytesIO((text or "").encode()))
    return body.getvalue()


def saved(files: Mapping[str, bytes]) -> bytes:
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w") as out:
        for path, data in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(data)
            out.addfile(info, io.BytesIO(data))
    return body.getvalue()


def configuration(*environ: str) -> bytes:
    return json.dumps({"architecture": "amd64", "os": "linux", "config": {"Env": [PATH, *environ]}}).encode()


def docker(layers: Sequence[bytes], *environ: str) -> bytes:
    named = {f"layer{number}/layer.tar": layer for number, layer in enumerate(layers)}
    manifest = [{"Config": "config.json", "Layers": [*named]}]
    return saved(
        {"config.json": configuration(*environ), **named, "manifest.json": json.dumps(manifest).encode()}
    )


def oci(layers: Sequence[bytes], *environ: str) -> bytes:
    blobs: dict[str, bytes] = {}

    def blob(data: bytes, kind: str) -> dict[str, object]:
        digest = hashlib.sha256(data).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = data
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}"}

    listed = [blob(layer, "layer.v1.tar+gzip") for layer in layers]
    manifest = {"config": blob(configuration(*environ), "config.v1+json"), "layers": listed}
    inner = {"manifests": [blob(json.dumps(manifest).encode(), "manifest.v1+json")]}
    index = {"manifests": [blob(json.dumps(inner).encode(), "index.v1+json")]}
    return saved({"oci-layout": b"{}", "index.json": json.dumps(index).encode(), **blobs})


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return tmp_path / "image.tar"


@pytest.mark.parametrize("layout", [docker, oci])
def test_an_image_tells_what_its_python_finds(layout: object, image: Path) -> None:
    image.write_bytes(layout([tar(BASE)], "CUDA_VERSION=12.4.1", "NCCL_DEBUG=INFO", "API_TOKEN=x"))  # type: ignore[operator]
    facts = read_image(str(image))
    versions = {name: one.version for name, one in facts.environment.distributions.items()}
    assert versions == {"torch": "2.4.0", "numpy": "1.26.4"}
    assert facts.environment.complete
    assert facts.environment.python.get() == "3.11"
    assert facts.environment.builds["torch"] == {"version": "2.4.0+cu124", "cuda": "12.4"}
    assert facts.host.glibc.get() == "2.35"
    assert facts.host.distro.get() == "ubuntu 22.04"
    assert [str(toolkit.version) for toolkit in facts.toolkits.get() or ()] == ["12.4", "12.4"]
    assert facts.variables == {"CUDA_VERSION": "12.4.1", "NCCL_DEBUG": "INFO"}


def test_a_later_layer_replaces_and_hides_what_lower_ones_hold(image: Path) -> None:
    old = f"{SITE}/torch-2.4.0.dist-info"
    above = {f"{SITE}/.wh.torch-2.4.0.dist-info": "", **metadata("torch", "2.6.0")}
    emptied = {f"{SITE}/.wh..wh..opq": "", **metadata("vllm", "0.8.0")}
    image.write_bytes(docker([tar(BASE), gzip.compress(tar(above))]))
    found = read_image(str(image)).environment.distributions
    assert (found["torch"].version, f"/{old}") == ("2.6.0", f"/{old}")
    image.write_bytes(docker([tar(BASE), tar(above), tar(emptied)]))
    assert [*read_image(str(image)).environment.distributions] == ["vllm"]


def test_a_whiteout_hides_nothing_of_its_own_layer(image: Path) -> None:
    own = {**metadata("vllm", "0.8.0"), f"{SITE}/.wh.vllm-0.8.0.dist-info": ""}
    image.write_bytes(docker([tar(BASE), tar(own)]))
    assert "vllm" in read_image(str(image)).environment.distributions


def test_an_image_is_judged_for_a_card_and_a_driver(image: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image.write_bytes(docker([tar(BASE)], "CUDA_VERSION=12.4.1"))
    code = main(["diagnose", "--image", str(image), "--gpu", "RTX 5090", "--driver", "525.60.13"])
    told = capsys.readouterr().out
    assert code == 1
    assert "TORCH-ARCH" in told
    assert str(image) in told


def test_the_environment_that_path_names_first_is_the_one(image: Path) -> None:
    venv = {
        "opt/venv/bin/python3": "",
        "opt/venv/pyvenv.cfg": "home = /usr/local/bin\nversion = 3.12.4\n",
        "opt/venv/lib/python3.12/site-packages/peft-1.dist-info/METADATA": "Name: peft\nVersion: 1\n\n",
    }
    body = docker([tar(BASE), tar(venv)]).replace(
        b"/usr/local/bin:/usr/bin:/bin", b"/opt/venv/bin:/usr/local/bin"
    )
    image.write_bytes(body)
    facts = read_image(str(image))
    assert [*facts.environment.distributions] == ["peft"]
    assert facts.environment.python.get() == "3.12.4"
    assert "another Python" in facts.notes[0]


def test_an_image_without_python_says_so(image: Path) -> None:
    image.write_bytes(docker([tar({"etc/os-release": "ID=alpine\n"})]))
    facts = read_image(str(image))
    assert not facts.environment.complete
    assert "leads to no Python" in facts.notes[0]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "neither manifest.json nor index.json"),
        (b"no tar at all" * 100, "no image"),
        (saved({"manifest.json": b"[]"}), "lists no image"),
        (saved({"manifest.json": b'[{"Config": "c", "Layers": []}]'}), "c is not in it"),
        (saved({"index.json": b'{"manifests": []}'}), "names no image"),
        (docker([tar(BASE)[:1500]]), "layer 1"),
        (docker([b"\x1f\x8b" + b"junk" * 200]), "layer 1"),
    ],
)
def test_what_is_no_image_is_refused_in_one_line(body: bytes, said: str, image: Path) -> None:
    image.write_bytes(body)
    with pytest.raises(InputError, match=said) as caught:
        read_image(str(image))
    assert "\n" not in str(caught.value)


def test_a_layer_that_unpacks_to_too_much_is_refused(image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "FREE", 1 << 20)
    monkeypatch.setattr(archive, "MAX_RATIO", 10)
    image.write_bytes(docker([gzip.compress(tar({"big": "\0" * (8 << 20)}))]))
    with pytest.raises(InputError, match="unpacks to more than"):
        read_image(str(image))


def test_a_layer_in_zstd_is_said_to_be_unread_where_python_reads_none(
    image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    monkeypatch.setitem(sys.modules, "backports.zstd", None)
    image.write_bytes(docker([tar(BASE), b"\x28\xb5\x2f\xfd" + b"\0" * 600]))
    facts = read_image(str(image))
    assert not facts.environment.complete
    assert "zstd" in facts.unread["layers"]


def zstd(data: bytes) -> bytes:
    name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    return pytest.importorskip(name).compress(data)  # type: ignore[no-any-return]


def test_layers_in_zstd_are_read_like_others(image: Path) -> None:
    half = tar(BASE)[: 512 * 9]
    layers = [zstd(half) + zstd(tar(BASE)[512 * 9 :]), zstd(tar(metadata("torch", "2.5.0")))]
    image.write_bytes(oci(layers))
    facts = read_image(str(image))
    assert facts.environment.complete
    assert facts.environment.distributions["numpy"].version == "1.26.4"


def test_a_layer_in_zstd_that_unpacks_to_too_much_is_refused(
    image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "FREE", 1 << 20)
    monkeypatch.setattr(archive, "MAX_RATIO", 10)
    image.write_bytes(docker([zstd(tar({"big": "\0" * (8 << 20)}))]))
    with pytest.raises(InputError, match="unpacks to more than"):
        read_image(str(image))


@pytest.mark.parametrize("end", [30, 200])
def test_a_layer_in_zstd_that_is_broken_is_refused_in_one_line(end: int, image: Path) -> None:
    whole = zstd(tar(BASE))
    image.write_bytes(docker([whole[:end] + b"\xff" * (len(whole) - end)]))
    with pytest.raises(InputError, match="layer 1"):
        read_image(str(image))


def test_paths_that_lead_elsewhere_are_passed_over(image: Path) -> None:
    image.write_bytes(docker([tar(BASE), tar({f"../{SITE}/evil-1.dist-info/METADATA": "Name: evil\n\n"})]))
    assert "evil" not in read_image(str(image)).environment.distributions
