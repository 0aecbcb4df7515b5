"""A gem server as upstream: the compact index, gems, and specifications of the legacy index."""

from __future__ import annotations

import base64
import gzip
import hashlib
import zlib
from typing import Any

from tests.support.gems import EMPTY_DATA, make_gemspec, pack_gem
from tests.support.upstreams.messages import Answer, Request
from tests.support.upstreams.server import UNKNOWN, ScriptedUpstream

HEAD = b"created_at: 2024-01-01T00:00:00Z\n---\n"
EMPTY = b"---\n"


class RubyUpstream(ScriptedUpstream):
    """A server of gems added with L{add}. Lists of the legacy index are those that tests serve."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.lines: list[bytes] = []  # of the list of versions
        self.infos: dict[str, list[bytes]] = {}

    def add(
        self, name: str, version: str = "1.0.0", *, created: str = "2024-01-01T00:00:00Z", pad: int = 0, **gem: Any
    ) -> bytes:
        """
        Publish a gem. Returns its bytes.

        ``pad`` bytes are added to it; other arguments are those of C{make_gemspec}.
        """
        data = pack_gem(make_gemspec(name, version, **gem), data=EMPTY_DATA + bytes(pad))
        platform = gem.get("platform", "ruby")
        full = version if platform == "ruby" else f"{version}-{platform}"
        needs = ",".join(
            f"{needed}:{'&'.join(f'{sign} {bound}' for sign, bound in bounds)}"
            for needed, bounds in sorted((gem.get("dependencies") or {}).items())
        )
        line = f"{full} {needs}|checksum:{hashlib.sha256(data).hexdigest()},created_at:{created}"
        self.infos.setdefault(name, []).append(line.encode())
        self.lines.append(f"{name} {full} {hashlib.md5(self.info(name)).hexdigest()}".encode())
        self.serve(f"/gems/{name}-{full}.gem", data)
        packed = zlib.compress(f"specification of {name} {full}".encode())
        self.serve(f"/quick/Marshal.4.8/{name}-{full}.gemspec.rz", packed)
        return data

    def yank(self, name: str, version: str) -> None:
        """Remove a version from the index; its files stay."""
        self.infos[name] = [line for line in self.infos[name] if not line.startswith(f"{version} ".encode())]
        self.lines.append(f"{name} -{version} {hashlib.md5(self.info(name)).hexdigest()}".encode())

    def info(self, name: str) -> bytes:
        """The document of a gem."""
        return EMPTY + b"".join(line + b"\n" for line in self.infos[name])

    @property
    def versions(self) -> bytes:
        """The list of versions."""
        return HEAD + b"".join(line + b"\n" for line in self.lines)

    def serve_specs(self, name: str) -> bytes:
        """Serve some list of the legacy index, which is returned."""
        data = gzip.compress(f"rows of {name}".encode(), mtime=0)
        self.serve(f"/{name}", data)
        return data

    def answer(self, request: Request) -> Answer:
        """A document of L{serve}, or one of the compact index."""
        found = self.documents.get(request.path)
        if found is not None:
            return found
        if request.path == "/versions":
            return _text(self.versions)
        name = request.path.removeprefix("/info/")
        return _text(self.info(name)) if name in self.infos and name != request.path else UNKNOWN


class LegacyRubyUpstream(ScriptedUpstream):
    """A server as ``gem generate_index`` makes it: lists of the legacy index, gemspecs and gems, added with L{add}."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.rows: dict[str, list[bytes]] = {
            "specs.4.8.gz": [],
            "latest_specs.4.8.gz": [],
            "prerelease_specs.4.8.gz": [],
        }

    def add(self, name: str, version: str = "1.0.0", *, platform: str = "ruby", **gem: Any) -> bytes:
        """Publish a gem, and write the lists anew. Returns its bytes; arguments are those of C{make_gemspec}."""
        # Not above: benchmarks run without the libraries of the server.
        from pkgrepo.formats.rubygems.legacy import join_rows, list_row, quick_gemspec
        from pkgrepo.formats.rubygems.push.gem_metadata import inspect_gem

        data = pack_gem(make_gemspec(name, version, platform=platform, **gem))
        spec = inspect_gem(data)
        self.serve(f"/gems/{spec.full_name}.gem", data)
        self.serve(f"/quick/Marshal.4.8/{spec.full_name}.gemspec.rz", quick_gemspec(spec))
        self.rows["prerelease_specs.4.8.gz" if spec.prerelease else "specs.4.8.gz"].append(
            list_row(name, version, platform)
        )
        for file, rows in self.rows.items():
            self.serve(f"/{file}", gzip.compress(join_rows(rows), mtime=0))
        return data


def text_fields(body: bytes) -> dict[str, str]:
    """The header fields of a document of the compact index."""
    return {
        "Content-Type": "text/plain; charset=utf-8",
        "ETag": f'"{hashlib.md5(body).hexdigest()}"',
        "Repr-Digest": f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode()}:",
    }


def _text(body: bytes) -> Answer:
    return Answer(body=body, fields=text_fields(body), compress=True)
