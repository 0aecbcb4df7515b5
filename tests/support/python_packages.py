"""Makes small wheels and source distributions in memory; the defaults are valid."""

from __future__ import annotations

import base64
import hashlib
import io
import random
import re
import zipfile
from collections.abc import Mapping, Sequence

from tests.support.tarballs import make_tar_gz

DATE = (2024, 1, 1, 0, 0, 0)
PADDING = "padding.bin"

Fields = Sequence[tuple[str, str]]


def make_metadata(
    name: str,
    version: str,
    *,
    requires_python: str | None = None,
    summary: str = "",
    metadata_version: str = "2.1",
    fields: Fields = (),
    description: str = "",
) -> bytes:
    """Return core metadata; ``fields`` are additional lines, in order."""
    lines = [("Metadata-Version", metadata_version), ("Name", name), ("Version", version)]
    if summary:
        lines.append(("Summary", summary))
    if requires_python is not None:
        lines.append(("Requires-Python", requires_python))
    head = "".join(f"{field}: {value}\n" for field, value in (*lines, *fields))
    return f"{head}\n{description}".encode()


def make_wheel(
    name: str,
    version: str,
    *,
    requires_python: str | None = None,
    summary: str = "",
    extra_files: Mapping[str, bytes] | None = None,
    pad: int = 0,
    tag: str = "py3-none-any",
    build: str = "",
    metadata: bytes | None = None,
    fields: Fields = (),
) -> tuple[str, bytes]:
    """Return file name and bytes of a wheel; ``pad`` is the size in bytes of an additional incompressible member."""
    escaped = escape(name)
    members = {
        f"{escaped}/__init__.py": f'__version__ = "{version}"\n'.encode(),
        **_padding(f"{escaped}/{PADDING}", pad),
        **(extra_files or {}),
    }
    if metadata is None:
        metadata = make_metadata(name, version, requires_python=requires_python, summary=summary, fields=fields)
    info = f"{escaped}-{version}.dist-info"
    members[f"{info}/METADATA"] = metadata
    members[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n".encode()
    members[f"{info}/RECORD"] = make_record(members, f"{info}/RECORD")
    stem = "-".join(part for part in (escaped, version, build, tag) if part)
    return f"{stem}.whl", make_zip(members)


def make_sdist(
    name: str,
    version: str,
    *,
    requires_python: str | None = None,
    summary: str = "",
    extra_files: Mapping[str, bytes] | None = None,
    pad: int = 0,
    metadata: bytes | None = None,
    fields: Fields = (),
    ending: str = ".tar.gz",
) -> tuple[str, bytes]:
    """Return file name and bytes of a source distribution: a gzipped tar, or a zip archive if ``ending`` is .zip."""
    stem = f"{escape(name)}-{version}"
    if metadata is None:
        metadata = make_metadata(name, version, requires_python=requires_python, summary=summary, fields=fields)
    members = {
        f"{stem}/PKG-INFO": metadata,
        f"{stem}/pyproject.toml": b'[build-system]\nrequires = ["setuptools"]\n',
        f"{stem}/{escape(name)}/__init__.py": b"",
        **_padding(f"{stem}/{PADDING}", pad),
        **{f"{stem}/{path}": content for path, content in (extra_files or {}).items()},
    }
    return f"{stem}{ending}", make_zip(members) if ending == ".zip" else make_tar_gz(members)


def escape(name: str) -> str:
    """Return a project's name as it is written in file names."""
    return re.sub(r"[-_.]+", "_", name).lower()


def make_record(members: Mapping[str, bytes], record: str) -> bytes:
    """Return a RECORD that lists these members and itself."""
    rows = []
    for path, content in members.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        quoted = '"' + path.replace('"', '""') + '"' if re.search(r'[",\n]', path) else path
        rows.append(f"{quoted},sha256={digest},{len(content)}\n")
    return ("".join(rows) + f"{record},,\n").encode()


def make_zip(members: Mapping[str, bytes]) -> bytes:
    """Return a reproducible zip archive; padding, which cannot be compressed, is stored."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in members.items():
            info = zipfile.ZipInfo(path, DATE)
            info.compress_type = zipfile.ZIP_STORED if path.endswith(PADDING) else zipfile.ZIP_DEFLATED
            info.external_attr = 0o100644 << 16
            archive.writestr(info, content)
    return target.getvalue()


def _padding(path: str, size: int) -> dict[str, bytes]:
    return {path: random.Random(size).randbytes(size)} if size else {}
