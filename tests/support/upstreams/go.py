"""A module proxy as upstream, and a checksum database behind it, as far as it is passed through."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.support.go_modules import go_mod, make_module, module_files, path
from tests.support.upstreams.messages import Answer
from tests.support.upstreams.server import ScriptedUpstream

OLD = "2024-01-02T03:04:05Z"


class GoUpstream(ScriptedUpstream):
    """
    A module proxy with the modules that are added; nothing tells when its files were changed.

    Requests for zips are redirected to ``files``, if another server is given.
    """

    def __init__(self, *, files: ScriptedUpstream | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.files = files

    def add(
        self,
        module: str,
        *versions: str,
        time: str = OLD,
        listed: bool = True,
        licence: str = "MIT",
        files: Mapping[str, bytes] | None = None,
    ) -> None:
        """Serve versions of a module, with further files, which are the only ones of its list."""
        top = path(module, "v0.0.0").partition("/@v/")[0]
        self.serve(f"{top}/@v/list", "".join(f"{each}\n" for each in versions if listed).encode())
        for version in versions:
            info = json.dumps({"Version": version, "Time": time, "Origin": {"VCS": "git"}}).encode()
            self.serve(path(module, version, "info"), info)
            self.serve(path(module, version, "mod"), go_mod(module))
            content, place = {**module_files(module), **(files or {})}, path(module, version)
            (self.files or self).serve(place, make_module(module, version, content, licence=licence))
            if self.files is not None:
                self.serve(place, Answer(302, fields={"Location": f"{self.files.url}{place}"}))
            self.serve(f"{top}/@latest", info)

    def pass_through(self, name: str) -> None:
        """Serve parts of a checksum database."""
        self.serve(f"/sumdb/{name}/supported", b"")
        self.serve(f"/sumdb/{name}/latest", b"go.sum database tree\n1\nAAAA\n\n- x AAAA\n")
        self.serve(f"/sumdb/{name}/tile/8/0/000.p/1", bytes(range(32)))
        self.serve(f"/sumdb/{name}/lookup/example.com/known@v1.0.0", b"0\nexample.com/known v1.0.0 h1:x=\n")


HTML = Answer(body=b"<html>log in</html>", fields={"Content-Type": "text/html"})
