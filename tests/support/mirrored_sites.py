"""A server with packages of all formats, one with proxies of it that mirrors them, and one that is given bundles."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pkgrepo.auth.tokens.text import make_token
from pkgrepo.model import TokenKind
from tests.support.conda_packages import make_installable
from tests.support.configurations import hosted, proxy, tokens, virtual
from tests.support.first_publishes import MODULE, NAME, Published, Publisher
from tests.support.forked_programs import run_pkgrepo
from tests.support.format_cases import CASES
from tests.support.go_modules import h1_of_zip
from tests.support.http_client import HttpClient
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import ServerProcess, clean_environment, running

FORMATS = {
    "py": "python",
    "node": "npm",
    "java": "maven",
    "gems": "ruby",
    "channel": "conda",
    "crates": "cargo",
    "modules": "go",
    "charts": "helm",
    "files": "raw",
    "images": "docker",
}
PUBLIC = 'visibility = "public"'
TOOL, TOOL_FILE = "tool", "tool-2.0-h0_0.conda"  # a conda package that can be installed
TOKEN = make_token(TokenKind.CI)
BLOCKED = '{ rules = [{ name = "no", action = "block", match = { packages = ["first"] } }] }'


class Sites:
    """A server with packages of all formats, a server with proxies of them, and one that is only given bundles."""

    def __init__(self, upstream: ServerProcess, site: ServerProcess, far: ServerProcess, folder: Path) -> None:
        self.upstream, self.folder = upstream, folder
        self.site, self.far = (HttpClient(each.url, (USER, PASSWORD)) for each in (site, far))
        self.published: dict[str, Published] = {}

    def lock(self, name: str) -> tuple[str, str]:
        """The lock file of the package of a repository."""
        each = self.published[name]
        sha256 = hashlib.sha256(each.data).hexdigest()
        integrity = f"sha512-{base64.b64encode(hashlib.sha512(each.data).digest()).decode()}"
        path = each.file.partition(f"/{name}/")[2]
        packages = {f"node_modules/{NAME}": {"version": "1.0.0", "integrity": integrity}}
        return {
            "py": ("requirements.txt", f"{NAME}==1.0 --hash=sha256:{sha256}\n"),
            "node": ("package-lock.json", json.dumps({"lockfileVersion": 3, "packages": packages})),
            "java": ("paths.txt", f"{sha256}  {path}\n"),
            "gems": ("Gemfile.lock", f"GEM\n  remote: https://g.example/\n  specs:\n    {NAME} (1.0.0)\n"),
            "channel": (
                "explicit.txt",
                f"@EXPLICIT\nhttps://c.example/{path}#sha256:{sha256}\nhttps://c.example/noarch/{TOOL_FILE}\n",
            ),
            "crates": ("Cargo.lock", CASES["cargo"].lock(NAME, "1.0.0", each.data)[1]),
            "modules": ("go.sum", f"{MODULE} v1.0.0 {h1_of_zip(self.published['modules'].data)}\n"),
            "charts": ("Chart.lock", CASES["helm"].lock(NAME, "1.0.0", each.data)[1]),
            "files": ("files.sha256", f"{sha256}  {path}\n"),
            "images": ("images.txt", f"r.example/{NAME}:v1\n"),
        }[name]

    def mirror(self, repository: str, *locks: tuple[str, str], status: int = 200, **more: Any) -> dict[str, Any]:
        value = {"locks": [{"name": name, "text": text} for name, text in locks], **more}
        reply = self.site.post_json(f"/api/repository/main%2F{repository}/mirror?wait=300", value)
        assert reply.status == status, reply.text
        return reply.json

    def take(self, bundle: Path, name: str, status: int = 200, **more: Any) -> dict[str, Any]:
        """Have the far server take what a bundle has of a repository."""
        value = {"kind": "bundle", "source": str(bundle), "into": f"main/{name}", "repositories": [f"main/{name}"]}
        reply = self.far.post_json("/api/import?wait=300", {**value, **more})
        assert reply.status == status, reply.text
        return reply.json

    def pkgrepo(self, url: str, *arguments: str, status: int = 0) -> str:
        (self.folder / "token").write_text(TOKEN)
        command = [*arguments, "--url", url, "--token-file", str(self.folder / "token")]
        done = run_pkgrepo(*command, environ=clean_environment(), folder=self.folder)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr


@contextmanager
def mirrored_sites(folder: Path) -> Iterator[Sites]:
    """Run the three servers."""
    for each in ("upstream", "site", "far", "bundles"):
        (folder / each).mkdir()
    scope = tokens(USER, {"t": TOKEN}, {"t": ("*", ["read", "edit", "admin"], [])})
    with running(folder / "upstream", hosted("npm", "unused")) as upstream:
        sections = [
            proxy(format_, name, f"{upstream.url}/repositories/main/{name}", lines=PUBLIC)
            for name, format_ in FORMATS.items()
        ]
        sections.append(proxy("npm", "strict", f"{upstream.url}/repositories/main/node", policy=BLOCKED))
        sections += [hosted("npm", "own"), virtual("npm", "both", "main/own", "main/node")]
        settings = 'proxy.allow_private = ["127.0.0.1"]\n'
        far_settings = f'imports.folders = ["{folder / "bundles"}"]\nimports.keys = ["{folder / "key.pem"}"]\n'
        far_sections = "".join(hosted(format_, **{name: PUBLIC}) for name, format_ in FORMATS.items())
        with (
            running(folder / "site", settings + "".join(sections) + scope) as site,
            running(folder / "far", far_settings + far_sections + scope) as far,
        ):
            found = Sites(upstream, site, far, folder)
            publisher = Publisher(upstream.url, (USER, PASSWORD))
            for each in publisher.publish_all():
                name = next(name for name, format_ in FORMATS.items() if format_ == each.format)
                found.published[name] = each
            tool = make_installable(TOOL, "2.0", "h0_0", {"share/tool.txt": b"x"})
            publisher.ask("PUT", f"repositories/main/channel/noarch/{TOOL_FILE}", data=tool)
            (folder / "key.pem").write_text(found.site.get("/api/system/twin-key").json["key"])
            yield found
