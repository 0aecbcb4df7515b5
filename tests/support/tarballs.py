"""Gzipped tar archives."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping

EPOCH = 499162500  # seconds; npm pack stamps it on every file


def make_tar_gz(members: Mapping[str, bytes], level: int = 9) -> bytes:
    """A gzipped tar archive of plain files, the same bytes every time."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, content in members.items():
            info = tarfile.TarInfo(path)
            info.size = len(content)
            info.mtime = EPOCH
            archive.addfile(info, io.BytesIO(content))
    return gzip.compress(target.getvalue(), level, mtime=EPOCH)
