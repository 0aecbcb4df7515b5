"""
Inspects an uploaded distribution: checks the archive and reads its metadata.

Nothing is unpacked to disk and no code of the distribution runs. CPU time and memory are bounded by ``limits``,
whatever sizes the archive declares.
"""

from __future__ import annotations

import os
from pathlib import Path

from attrs import frozen

from pkgrepo.archives.source import Source
from pkgrepo.formats.python.names import FileName, Kind

from .metadata import CoreMetadata, check_identity, parse_metadata
from .sdist import PKG_INFO, read_sdist
from .wheel import read_wheel


@frozen
class Inspection:
    """A distribution's metadata: the exact bytes of METADATA or PKG-INFO, and the parsed fields."""

    kind: Kind
    metadata_bytes: bytes
    metadata: CoreMetadata


def inspect(file: int | bytes | Path, filename: FileName) -> Inspection:
    """
    Inspect a distribution, given as a descriptor (which stays open), bytes or a path. Blocks: call it in a thread.

    :raises Invalid: it is damaged, unsafe to unpack, or of another project or version than its name says
    """
    if isinstance(file, int | bytes):
        return _inspect(file, filename)
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _inspect(descriptor, filename)
    finally:
        os.close(descriptor)


def _inspect(content: int | bytes, filename: FileName) -> Inspection:
    source = Source(content, filename.filename)
    is_wheel = filename.kind == "bdist_wheel"
    data = read_wheel(source, filename) if is_wheel else read_sdist(source, filename)
    where = "METADATA" if is_wheel else PKG_INFO
    metadata = parse_metadata(data, where)
    check_identity(metadata, filename, where)
    return Inspection(kind=filename.kind, metadata_bytes=data, metadata=metadata)
