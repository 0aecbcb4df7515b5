"""Files of Maven artifacts, and how they are put."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from tests.support.http_client import HttpClient

JAR = b"PK\x03\x04 this is a jar" * 100


def sums(data: bytes) -> dict[str, str]:
    """Return the checksums of a file by algorithm."""
    return {each: hashlib.new(each, data).hexdigest() for each in ("md5", "sha1", "sha256", "sha512")}


def make_pom(group: str, artifact: str, version: str, more: str = "") -> bytes:
    """Return a POM with these coordinates; ``more`` is further XML in it."""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<project xmlns="http://maven.apache.org/POM/4.0.0">'
        f"<modelVersion>4.0.0</modelVersion><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version>{more}</project>\n"
    ).encode()


def directory(group: str, artifact: str, version: str) -> str:
    """Return the path of a version, with a slash in front."""
    return f"/{group.replace('.', '/')}/{artifact}/{version}"


def put_all(
    where: HttpClient, group: str, artifact: str, version: str, files: Mapping[str, bytes], name: str | None = None
) -> None:
    """Put files of one version, by the rest of their names; ``name`` is the version in these."""
    for rest, data in files.items():
        path = f"{directory(group, artifact, version)}/{artifact}-{name or version}{rest}"
        reply = where.put(path, data)
        assert reply.status in (200, 201), (path, reply)
