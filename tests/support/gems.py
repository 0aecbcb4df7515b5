"""Makes gems, like ``gem build`` does, and broken ones."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.tarballs import make_tar

RECORDED = Path(__file__).parents[1] / "data" / "rubygems" / "rubygems-3.3.15"
EMPTY_DATA = gzip.compress(bytes(1024), mtime=0)


def recorded(name: str) -> bytes:
    """A gem that a real ``gem build`` made."""
    return (RECORDED / name).read_bytes()


def make_gemspec(
    name: str = "alpha",
    version: str = "1.0.0",
    *,
    platform: str = "ruby",
    dependencies: Mapping[str, Sequence[tuple[str, str]]] | None = None,
    extra: str = "",
) -> str:
    """A specification in YAML; ``extra`` are further lines."""
    lines = [
        "--- !ruby/object:Gem::Specification",
        f"name: {name}",
        "version: !ruby/object:Gem::Version",
        f"  version: {version}",
        f"platform: {platform}",
        "authors:",
        "- A",
        "date: 2024-05-06 00:00:00.000000000 Z",
        "dependencies:" if dependencies else "dependencies: []",
    ]
    for needed, bounds in (dependencies or {}).items():
        lines += [
            "- !ruby/object:Gem::Dependency",
            f"  name: {needed}",
            "  requirement: !ruby/object:Gem::Requirement",
            "    requirements:",
        ]
        for operator, bound in bounds:
            lines += [f'    - - "{operator}"', "      - !ruby/object:Gem::Version", f"        version: '{bound}'"]
        lines += ["  type: :runtime", "  prerelease: false"]
    lines += ["rubygems_version: 3.3.15", "specification_version: 4", "summary: A gem"]
    return "\n".join(lines) + "\n" + extra


def checksums(members: Mapping[str, bytes], algorithms: Sequence[str] = ("SHA256", "SHA512")) -> bytes:
    """The ``checksums.yaml.gz`` of these members."""
    lines = ["---"]
    for algorithm in algorithms:
        lines.append(f"{algorithm}:")
        lines += [f"  {name}: {hashlib.new(algorithm.lower(), data).hexdigest()}" for name, data in members.items()]
    return gzip.compress("\n".join(lines).encode() + b"\n", mtime=0)


def pack_gem(gemspec: str | bytes, *, data: bytes = EMPTY_DATA) -> bytes:
    """The gem of a specification in YAML."""
    text = gemspec if isinstance(gemspec, bytes) else gemspec.encode()
    members = {"metadata.gz": gzip.compress(text, mtime=0), "data.tar.gz": data}
    return make_tar([*members.items(), ("checksums.yaml.gz", checksums(members))])


def make_gem(
    name: str = "alpha",
    version: str = "1.0.0",
    *,
    platform: str = "ruby",
    dependencies: Mapping[str, Sequence[tuple[str, str]]] | None = None,
    extra: str = "",
) -> bytes:
    """A gem without files."""
    return pack_gem(make_gemspec(name, version, platform=platform, dependencies=dependencies, extra=extra))
