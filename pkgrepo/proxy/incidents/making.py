"""Parts of harmless archives: text that does nothing, in the sizes and kinds of files that incidents had."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from collections.abc import Mapping
from typing import Final

from .shapes import Published

MACHINE_CODE: Final = b"\x7fELF" + bytes(60)  # what begins like a program, and is none
SCRIPT: Final = b"#!/bin/sh\nexit 0\n"

_LINE: Final = "this line is here for its length alone, and does nothing"
_DATE: Final = (2020, 1, 1, 0, 0, 0)


def filler(published: Published, comment: str) -> bytes:
    """Text of the size and density of the code of a version: lines of comments, or a single one."""
    size = max(published.kib, 1) * 1024
    if published.dense:
        return f"{comment} {'harmless ' * (size // 9)}"[:size].encode() + b"\n"
    line = f"{comment} {_LINE}\n"
    return (line * (size // len(line) + 1)).encode()


def tar_of(members: Mapping[str, bytes]) -> bytes:
    """An uncompressed tar archive, the same for the same members."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return target.getvalue()


def tar_gz_of(members: Mapping[str, bytes]) -> bytes:
    """A compressed tar archive, the same for the same members."""
    return gzip.compress(tar_of(members), compresslevel=6, mtime=0)


def zip_of(members: Mapping[str, bytes]) -> bytes:
    """A zip archive, the same for the same members."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            member = zipfile.ZipInfo(name, _DATE)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = 0o100644 << 16
            archive.writestr(member, content)
    return target.getvalue()
