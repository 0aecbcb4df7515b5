"""Charts as ``helm package`` writes them, and odd ones."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping

import yaml


def make_chart(
    name: str,
    version: str,
    *,
    folder: str = "",
    files: Mapping[str, str | bytes] = {},
    raw: bytes | None = None,
    **fields: object,
) -> bytes:
    """
    The archive of a chart, the same bytes each time; ``fields`` are further ones of ``Chart.yaml``.

    Its files are in a ``folder`` with the name of the chart, if no other one is given; ``raw`` is its ``Chart.yaml``.
    """
    described = {"apiVersion": "v2", "name": name, "version": version, "description": "A chart", **fields}
    content: dict[str, str | bytes] = {
        "Chart.yaml": yaml.safe_dump(described) if raw is None else raw,
        "values.yaml": "replicas: 1\n",
        "templates/service.yaml": "kind: Service\n",
        **files,
    }
    return pack({f"{folder or name}/{path}": data for path, data in content.items()})


def pack(files: Mapping[str, str | bytes], *others: tarfile.TarInfo) -> bytes:
    """A gzip file with these files in a tar archive, and other entries without content."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        for path, data in files.items():
            content = data.encode() if isinstance(data, str) else data
            info = tarfile.TarInfo(path)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for each in others:
            archive.addfile(each)
    return out.getvalue()


def make_provenance(file: str, sha256: str) -> bytes:
    """Provenance of an archive, whose signature is none."""
    return (
        "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\nname: demo\nversion: 1.0.0\n\n...\nfiles:\n"
        f"  {file}: sha256:{sha256}\n-----BEGIN PGP SIGNATURE-----\n\nx\n-----END PGP SIGNATURE-----\n"
    ).encode()
