"""Makes tar archives."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping, Sequence

EPOCH = 499162500  # seconds since the epoch; npm pack gives it to every file


def make_tar_gz(members: Mapping[str, bytes], level: int = 9) -> bytes:
    """Return a reproducible gzipped tar archive of plain files."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, content in members.items():
            info = tarfile.TarInfo(path)
            info.size = len(content)
            info.mtime = EPOCH
            archive.addfile(info, io.BytesIO(content))
    return gzip.compress(target.getvalue(), level, mtime=EPOCH)


def make_tar(members: Sequence[tuple[str, bytes]]) -> bytes:
    """An uncompressed tar archive of plain files, which may have the same name."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path, content in members:
            info = tarfile.TarInfo(path)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return target.getvalue()
