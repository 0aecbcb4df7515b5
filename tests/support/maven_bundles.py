"""Makes artifacts in the Maven layout, and bundles of them."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Iterable, Mapping

from tests.support.timeouts import polled

SIGNATURE = b"-----BEGIN PGP SIGNATURE-----\n\niQEzBAABCAAdFiEE\n=abcd\n-----END PGP SIGNATURE-----\n"

Members = Iterable[tuple[str, bytes]] | Mapping[str, bytes]


def make_pom(group: str, artifact: str, version: str, *, packaging: str = "jar", more: str = "") -> bytes:
    """A POM with these coordinates; ``more`` are further elements."""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<project xmlns="http://maven.apache.org/POM/4.0.0">'
        f"<modelVersion>4.0.0</modelVersion><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version><packaging>{packaging}</packaging>{more}</project>\n"
    ).encode()


def make_jar(members: Mapping[str, bytes] | None = None) -> bytes:
    """A jar; each with other members has other bytes."""
    return make_zip(members or {"META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\n"})


def artifact(
    group: str,
    name: str,
    version: str,
    *,
    file_version: str | None = None,
    jar: bytes | None = None,
    packaging: str = "jar",
) -> dict[str, bytes]:
    """The POM and the jar of an artifact, by path."""
    stem = f"{group.replace('.', '/')}/{name}/{version}/{name}-{file_version or version}"
    content = make_jar({"name": f"{group}:{name}:{version}".encode()}) if jar is None else jar
    return {f"{stem}.jar": content, f"{stem}.pom": make_pom(group, name, version, packaging=packaging)}


def with_checksums(files: Mapping[str, bytes], *algorithms: str) -> dict[str, bytes]:
    """The files, and a checksum file beside each for every algorithm."""
    found = dict(files)
    for path, content in files.items():
        for algorithm in algorithms or ("md5", "sha1"):
            found[f"{path}.{algorithm}"] = hashlib.new(algorithm, content).hexdigest().encode()
    return found


def make_zip(members: Members, *, packed: bool = True) -> bytes:
    """A zip archive of these members, even with equal names."""
    target = io.BytesIO()
    method = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with zipfile.ZipFile(target, "w", method) as archive:
        for name, content in _items(members):
            entry = zipfile.ZipInfo("placeholder", (2024, 1, 2, 3, 4, 6))
            entry.filename = name  # as it is: the constructor would mend it
            entry.compress_type = method
            archive.writestr(entry, content)
    return target.getvalue()


def make_tar(members: Members) -> bytes:
    """A tar archive of these members."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in _items(members):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return target.getvalue()


def make_tar_gz(members: Members) -> bytes:
    """The same, compressed."""
    return gzip.compress(make_tar(members), 6, mtime=0)


def _items(members: Members) -> Iterable[tuple[str, bytes]]:
    return members.items() if isinstance(members, Mapping) else members


WAIT = "/deploy?wait=true"


ZIP = {"Content-Type": "application/zip"}


JSON = {**ZIP, "Accept": "application/json"}


def two(name, version="1.0"):
    """Two components of one build, by path."""
    return {**artifact("com.example", f"{name}-one", version), **artifact("com.example.sub", f"{name}-two", version)}


def deploy(where, members, path=WAIT, make=make_zip, **headers):
    return where.ask("POST", path, make(members), {**JSON, **{k.replace("_", "-"): v for k, v in headers.items()}})


def served(where, members):
    """The statuses of the files of a bundle."""
    return {where.get(f"/{path}").status for path in members}


def wait_for_end(where, uid, end="PUBLISHED"):
    """The status of a deployment once it has this state or has failed; each request gives the server time to go on."""
    return polled(lambda: status if (status := where.get(f"/deploy/{uid}").json)["state"] in (end, "FAILED") else None)
