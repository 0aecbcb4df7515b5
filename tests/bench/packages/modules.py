"""Synthetic modules of a Java build, and the requests with which Maven 3.9 deploys them."""

from __future__ import annotations

import hashlib
import random
from functools import cached_property

from attrs import define

from tests.bench.clients.load import Post
from tests.bench.measure import MIB

GROUP = "com.example.bench"
SUFFIXES = (".jar", ".pom", "-sources.jar", "-javadoc.jar", "-tests.jar", ".module")  # the first is deployed first
JAR_SIZE = 9 * 1024  # bytes
POM = """<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>{group}</groupId>
  <artifactId>{artifact}</artifactId>
  <version>{version}</version>
  <name>A module made to be weighed</name>
  <description>With a description of the length that people give theirs</description>
  <url>https://example.org/weighed</url>
  <licenses><license><name>Apache-2.0</name></license></licenses>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""
DEPENDENCY = """    <dependency>
      <groupId>com.example.other</groupId>
      <artifactId>library-{number}</artifactId>
      <version>1.{number}</version>
    </dependency>"""
METADATA = """<?xml version="1.0" encoding="UTF-8"?>
<metadata>
  <groupId>{group}</groupId>
  <artifactId>{artifact}</artifactId>
  <versioning>
    <release>{version}</release>
    <versions>
      <version>{version}</version>
    </versions>
    <lastUpdated>20240102030405</lastUpdated>
  </versioning>
</metadata>
"""


@define(slots=False, frozen=True)
class Module:
    """One version of an artifact; its jars do not compress, and have the same bytes whenever they are made."""

    artifact: str
    version: str = "1.0"

    @property
    def directory(self) -> str:
        """The path of the artifact's directory below the repository, with a slash at its beginning and no other end."""
        return f"/{GROUP.replace('.', '/')}/{self.artifact}"

    @property
    def stem(self) -> str:
        """The path of its files up to their suffix."""
        return f"{self.directory}/{self.version}/{self.artifact}-{self.version}"

    @cached_property
    def files(self) -> dict[str, bytes]:
        """The bytes of its six files by path."""
        dependencies = "\n".join(DEPENDENCY.format(number=number) for number in range(12))
        names = {"group": GROUP, "artifact": self.artifact, "version": self.version}
        texts = {".pom": POM.format(dependencies=dependencies, **names), ".module": '{"formatVersion": "1.1"}\n'}
        made = {}
        for suffix in SUFFIXES:
            path = self.stem + suffix
            made[path] = texts[suffix].encode() if suffix in texts else random_bytes(path, JAR_SIZE)
        return made

    def deploy(self, root: str) -> list[Post]:
        """Return the PUTs of a deploy, below a path: each file with its SHA-1 and MD5, at the end the metadata."""
        metadata = METADATA.format(group=GROUP, artifact=self.artifact, version=self.version).encode()
        contents = {**self.files, f"{self.directory}/maven-metadata.xml": metadata}
        return [put for path, content in contents.items() for put in _with_checksums(root + path, content)]

    def put(self, root: str) -> list[Post]:
        """Return the PUTs of its files only."""
        return [put(root + path, content) for path, content in self.files.items()]


def random_bytes(seed: str, size: int) -> bytes:
    """So many bytes that do not compress, the same ones for the same seed."""
    return random.Random(seed).randbytes(size)


def put(path: str, content: bytes) -> Post:
    """Return the upload of bytes to a path."""
    return Post({"User-Agent": "Apache-Maven/3.9.9 (Java 17; Linux)"}, [content], len(content), "PUT", path)


def _with_checksums(path: str, content: bytes) -> list[Post]:
    sha1 = hashlib.sha1(content).hexdigest().encode()
    md5 = hashlib.md5(content).hexdigest().encode()
    return [put(path, content), put(f"{path}.sha1", sha1), put(f"{path}.md5", md5)]


LARGE = 1024 * MIB
