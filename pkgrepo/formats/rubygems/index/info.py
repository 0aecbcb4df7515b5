"""
``/info/<gem>``: the versions of a gem, a line for each, as the compact index has it.

The body has a line ``---`` and then those of the live versions in the order of their publication.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from pkgrepo.formats.rubygems.gemspec import ANY, Dependency, GemSpec, render_requirement

INFO: Final = "info"  # the kind of fragments with these lines
HEAD: Final = b"---\n"
TEXT_TYPE: Final = "text/plain; charset=utf-8"
DIGESTS: Final = ("md5", "sha256")  # of the documents of the compact index

_CREATED: Final = b",created_at:"


def info_line(spec: GemSpec, sha256: str | None, created_at: datetime | None) -> bytes:
    """
    The line of a version, without its end; ``sha256`` is that of the gem, in hex.

    Clients do without what is not known of a gem: its checksum, and when it was published.
    """
    dependencies = sorted(spec.runtime_dependencies, key=lambda each: each.name)
    requirements = [] if sha256 is None else [f"checksum:{sha256}"]
    if spec.required_ruby != ANY:
        requirements.append(f"ruby:{render_requirement(spec.required_ruby, '&')}")
    if spec.required_rubygems != ANY:
        requirements.append(f"rubygems:{render_requirement(spec.required_rubygems, '&')}")
    line = f"{spec.full_version} {','.join(map(_dependency, dependencies))}|{','.join(requirements)}"
    return line.encode() + (b"" if created_at is None else _CREATED + render_time(created_at).encode())


def without_time(line: bytes) -> bytes:
    """A line without the time of publication, as the first version of the format had it."""
    return line.rpartition(_CREATED)[0] or line


def info_md5(lines: Iterable[bytes]) -> str:
    """The MD5 of the body that these lines make, in hex; ``/versions`` names it, and it is the body's validator."""
    # Joined, because each push of a gem asks this of all its lines, and a call for each takes longer than the digest.
    return hashlib.md5(HEAD + b"\n".join((*lines, b"")), usedforsecurity=False).hexdigest()


def render_time(time: datetime) -> str:
    """A time in UTC, in whole seconds (RFC 3339)."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _dependency(dependency: Dependency) -> str:
    return f"{dependency.name}:{render_requirement(dependency.requirement, '&')}"
