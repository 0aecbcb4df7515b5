"""A Maven repository as upstream: files with checksums beside them, and metadata of artifacts, snapshots and groups."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.upstreams.messages import Answer, Request, etag_of
from tests.support.upstreams.server import UNKNOWN, ScriptedUpstream

MODIFIED = "Mon, 01 Jan 2024 00:00:00 GMT"
UPDATED = "20240101000000"
METADATA = "maven-metadata.xml"
CHECKSUMS = ("md5", "sha1")


def pom(group: str, artifact: str, version: str, *, name: str = "", depends: Sequence[str] = ()) -> bytes:
    """A POM; ``depends`` are C{group:artifact:version}."""
    parts = (each.split(":") for each in depends)
    dependencies = "".join(
        f"<dependency><groupId>{g}</groupId><artifactId>{a}</artifactId><version>{v}</version></dependency>"
        for g, a, v in parts
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<project><modelVersion>4.0.0</modelVersion>'
        f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        f"<name>{name or artifact}</name><dependencies>{dependencies}</dependencies></project>\n"
    ).encode()


class MavenUpstream(ScriptedUpstream):
    """
    A repository of files added with L{add} and L{deploy}.

    ``checksums`` are the algorithms for which there are files of checksums. With ``fields`` the answers have header
    fields with the SHA-1, in which C{{}} stands for it. Files are at ``files`` by redirects if that is given, which is
    started and stopped by the test; their checksums are here.
    """

    def __init__(
        self,
        *,
        checksums: Sequence[str] = CHECKSUMS,
        fields: Mapping[str, str] | None = None,
        files: ScriptedUpstream | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.checksums = checksums
        self.fields = dict(fields or {})
        self.files = files
        self.data: dict[str, bytes] = {}  # by path
        self.versions: dict[str, list[str]] = {}
        self.plugins: dict[str, dict[str, str]] = {}
        self.builds: dict[str, list[tuple[str, str, str]]] = {}

    def add(self, path: str, data: bytes, **fields: str) -> str:
        """Serve a file at a path, without a slash before it; returns the path with it."""
        sha1 = hashlib.sha1(data).hexdigest()
        own = {name: value.replace("{}", sha1) for name, value in self.fields.items()}
        head = {"ETag": etag_of(data), "Last-Modified": MODIFIED, **own, **fields}
        answer = Answer(body=data, fields=head)
        self.data[f"/{path}"] = data
        if self.files is not None:
            self.files.serve(f"/{path}", answer)
            answer = Answer(302, fields={"Location": f"{self.files.url}/{path}"})
        self.serve(f"/{path}", answer)
        return f"/{path}"

    def deploy(
        self, group: str, artifact: str, version: str, data: bytes = b"", *, jar: bool = True, **options: Any
    ) -> str:
        """Publish a version with a POM, and a jar of these bytes; returns the path of the jar. See L{pom}."""
        directory = f"{group.replace('.', '/')}/{artifact}"
        base = f"{directory}/{version}/{artifact}-{version}"
        self.versions.setdefault(directory, []).append(version)
        self.add(f"{base}.pom", pom(group, artifact, version, **options))
        return self.add(f"{base}.jar", data or f"{artifact} {version}".encode()) if jar else f"/{base}.jar"

    def build(self, group: str, artifact: str, version: str, timestamp: str, number: int, data: bytes) -> str:
        """Publish one build of a snapshot, of a POM and a jar; returns the path of the jar."""
        directory = f"{group.replace('.', '/')}/{artifact}"
        value = f"{version.removesuffix('-SNAPSHOT')}-{timestamp}-{number}"
        versions = self.versions.setdefault(directory, [])
        if version not in versions:
            versions.append(version)
        base = f"{directory}/{version}/{artifact}-{value}"
        for extension in ("pom", "jar"):
            self.builds.setdefault(f"{directory}/{version}", []).append((extension, value, timestamp.replace(".", "")))
        self.add(f"{base}.pom", pom(group, artifact, version))
        return self.add(f"{base}.jar", data)

    def plugin(self, group: str, prefix: str, artifact: str) -> None:
        """Add a plugin to the metadata of a group."""
        self.plugins.setdefault(group.replace(".", "/"), {})[prefix] = artifact

    def metadata_path(self, directory: str) -> str:
        """The path of metadata."""
        return f"/{directory}/{METADATA}"

    def answer(self, request: Request) -> Answer:
        """A file, its checksum, or metadata."""
        path = request.path
        found = self.documents.get(path) or self._metadata(path)
        if found is not None:
            return found
        file, _, algorithm = path.rpartition(".")
        metadata = self._metadata(file)
        whole = self.data.get(file) if metadata is None else metadata.body
        if whole is not None and algorithm in self.checksums:
            return Answer(body=hashlib.new(algorithm, whole).hexdigest().encode())
        return UNKNOWN

    def _metadata(self, path: str) -> Answer | None:
        directory, _, name = path.removeprefix("/").rpartition("/")
        if name != METADATA:
            return None
        body = self._snapshot(directory) if directory in self.builds else self._artifact(directory)
        if body is None:
            return None
        fields = {"Content-Type": "text/xml", "ETag": etag_of(body), "Last-Modified": MODIFIED}
        return Answer(body=body, fields=fields, ranges=False, compress=True)

    def _artifact(self, directory: str) -> bytes | None:
        versions, plugins = self.versions.get(directory), self.plugins.get(directory)
        if versions is None and plugins is None:
            return None
        group, _, artifact = directory.rpartition("/")
        text = "<metadata>\n"
        if versions:
            listed = "".join(f"<version>{each}</version>" for each in versions)
            text += f"<groupId>{group.replace('/', '.')}</groupId><artifactId>{artifact}</artifactId><versioning>"
            text += f"<latest>{versions[-1]}</latest><release>{versions[-1]}</release><versions>{listed}</versions>"
            text += f"<lastUpdated>{UPDATED}</lastUpdated></versioning>"
        listed = "".join(
            f"<plugin><name>{name}</name><prefix>{prefix}</prefix><artifactId>{name}</artifactId></plugin>"
            for prefix, name in (plugins or {}).items()
        )
        text += f"<plugins>{listed}</plugins>" if listed else ""
        return f"{text}</metadata>\n".encode()

    def _snapshot(self, directory: str) -> bytes:
        *group, artifact, version = directory.split("/")
        builds = self.builds[directory]
        timestamp, _, number = builds[-1][1].removeprefix(f"{version.removesuffix('-SNAPSHOT')}-").partition("-")
        listed = "".join(
            f"<snapshotVersion><extension>{extension}</extension><value>{value}</value><updated>{updated}</updated>"
            "</snapshotVersion>"
            for extension, value, updated in builds[-2:]
        )
        return (
            f"<metadata><groupId>{'.'.join(group)}</groupId><artifactId>{artifact}</artifactId>"
            f"<version>{version}</version><versioning><snapshot><timestamp>{timestamp}</timestamp>"
            f"<buildNumber>{number}</buildNumber></snapshot><lastUpdated>{builds[-1][2]}</lastUpdated>"
            f"<snapshotVersions>{listed}</snapshotVersions></versioning></metadata>\n"
        ).encode()
