"""Which generator wrote a module, and of what version: it runs with some releases of its runtime alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

HEAD = 6_000
"""A generator tells its version within so many bytes."""
_TOLD = (
    ("antlr", re.compile(rb"# Generated from .{1,200}? by ANTLR (\d+(?:\.\d+)+)")),
    ("protobuf", re.compile(rb"ValidateProtobufRuntimeVersion\(\s*[\w.]+,\s*(\d+),\s*(\d+),\s*(\d+),")),
    ("grpc", re.compile(rb"GRPC_GENERATED_VERSION = '(\d+(?:\.\d+)+)'")),
)
_DESCRIPTORS = b"_descriptor.FieldDescriptor("
_BEFORE_POOLS = "3.18"
"""protoc writes descriptors out up to 3.18, and adds a serialized file to the pool from 3.19 on."""


def made_by(source: bytes) -> Iterator[tuple[str, str]]:
    """Yield the generator of a module, and the version that it says."""
    head = source[:HEAD]
    if b"enerated" not in head:
        return
    for generator, pattern in _TOLD:
        if told := pattern.search(head):
            yield generator, b".".join(told.groups()).decode()
    if b"protocol buffer compiler" in head and _DESCRIPTORS in source:
        yield "protobuf", _BEFORE_POOLS
