"""An HTTP client of an npm repository, and a folder with an environment for Node's package clients."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests

from tests.support.client_programs import CLIENTS as PROGRAMS
from tests.support.client_programs import ROOT, client, client_environment, program, run_client
from tests.support.python_index import PASSWORD, USER
from tests.support.timeouts import TIMEOUT_S

NPMS = ("npm-9", "npm-10", "npm-11", "npm-12")
PNPMS = ("pnpm", "pnpm-12")
CLIENTS = (*NPMS, *PNPMS, "yarn-1", "yarn-4", "bun")
COMPILED = {
    "NODE_OPTIONS": f"--require={ROOT / 'tests' / 'clients' / 'npm' / 'compiled.cjs'}",
    "COMPILED": str(PROGRAMS / "compiled"),
}
# The oldest and the newest, for what npm 10 does as one of them; it takes part where all CLIENTS do.
ENDS = (NPMS[0], NPMS[-1])


class Registry:
    """The repository at a path of a server; ``url`` ends with a slash."""

    def __init__(self, url: str, path: str) -> None:
        self.server = url
        self.url = f"{url}/repositories/{path}/"

    @property
    def key(self) -> str:
        """The prefix of the registry's settings in an .npmrc."""
        parts = urlsplit(self.url)
        return f"//{parts.netloc}{parts.path}"

    def token(self, **body: Any) -> str:
        """A new token of the admin from a login; with a body, from ``npm token create`` with that body."""
        login = self.ask("PUT", "-/user/org.couchdb.user:admin", json={"name": USER, "password": PASSWORD})
        token: str = login.json()["token"]
        if not body:
            return token
        headers = {"Authorization": f"Bearer {token}"}
        made = self.ask("POST", "-/npm/v1/tokens", json={"password": PASSWORD, **body}, headers=headers)
        text: str = made.json()["token"]
        return text

    def document(self, name: str) -> Mapping[str, Any]:
        """The packument of a package."""
        found: Mapping[str, Any] = self.ask("GET", name.replace("/", "%2f")).json()
        return found

    def ask(self, method: str, path: str, **options: Any) -> requests.Response:
        """Send a request, as the admin unless ``headers`` are given; a refusal fails the test."""
        if "headers" not in options:
            options["auth"] = (USER, PASSWORD)
        answer = requests.request(method, self.url + path, timeout=TIMEOUT_S, **options)
        assert answer.ok, answer.text
        return answer


class NodeBench:
    """
    A folder to run Node's clients in, with its own home, caches and settings, and ``registry`` as the only registry.

    Without a ``token`` requests are anonymous.
    """

    def __init__(self, folder: Path, registry: Registry, token: str | None) -> None:
        program("node")
        self.folder = folder
        self.registry = registry
        self.home = folder / "home"
        self.environ = client_environment(
            self.home,
            NPM_CONFIG_UPDATE_NOTIFIER="false",
            NPM_CONFIG_FUND="false",
            YARN_ENABLE_TELEMETRY="0",
            YARN_ENABLE_GLOBAL_CACHE="false",
            BUN_INSTALL=str(self.home / "bun"),
            DO_NOT_TRACK="1",
        )
        self.log_in(token)

    def log_in(self, token: str | None) -> None:
        """Use another token from now on, or none."""
        self.token = token
        lines = [f"registry={self.registry.url}"]
        if token is not None:
            lines.append(f"{self.registry.key}:_authToken={token}")
        (self.home / ".npmrc").write_text("\n".join(lines) + "\n")

    def environ_of(self, name: str) -> Mapping[str, str]:
        """The environment of a client: npm 12 needs a newer Node than Debian 12 has, and brings it along."""
        place = client(name).parent
        own = (place / "node").exists()
        return {**self.environ, "PATH": f"{place}{os.pathsep}{self.environ['PATH']}"} if own else self.environ

    def run(self, name: str, *command: str, cwd: Path | None = None, status: int | None = 0, **variables: str) -> str:
        """Run a client, and return its output; see ``run_client``."""
        # yarn 1 sends its token only with this setting; current versions of npm print a warning about it.
        always = {"npm_config_always_auth": "true"} if name == "yarn-1" else {}
        kept = COMPILED if name in ("pnpm", "yarn-4") else {}
        environ = {**self.environ_of(name), **always, **kept, **variables}
        return run_client([client(name), *command], environ=environ, folder=cwd or self.folder, status=status).stdout

    def package(self, name: str, version: str = "1.0.0", files: Mapping[str, str] | None = None, **fields: Any) -> Path:
        """Make a package that can be published, and return its folder."""
        place = self._place(f"package-{name}-{version}")
        manifest = {"name": name, "version": version, "description": f"{name} for tests", "main": "index.js", **fields}
        (place / "package.json").write_text(json.dumps(manifest, indent=2))
        (place / "index.js").write_text(f"module.exports = {json.dumps(f'{name}@{version}')};\n")
        (place / "README.md").write_text(f"# {name}\n")
        for path, text in (files or {}).items():
            (place / path).write_text(text)
        self._yarnrc(place)
        return place

    def project(self, title: str, **fields: Any) -> Path:
        """Make a project to install packages into, and return its folder."""
        place = self._place(f"project-{title}")
        (place / "package.json").write_text(json.dumps({"name": "app", "version": "0.0.0", "private": True, **fields}))
        self._yarnrc(place)
        return place

    def publish(self, name: str, place: Path, *options: str, status: int | None = 0) -> str:
        """Publish the package in a folder with a client."""
        command = {
            **dict.fromkeys(PNPMS, ("publish", "--no-git-checks")),
            "yarn-1": ("publish", "--non-interactive"),
            "yarn-4": ("npm", "publish"),
        }.get(name, ("publish",))
        if name == "yarn-4":
            self.run(name, "install", cwd=place)
        return self.run(name, *command, *options, cwd=place, status=status)

    def install(self, name: str, place: Path, *packages: str, status: int | None = 0) -> str:
        """Add packages to a project with a client."""
        command = dict.fromkeys(NPMS, ("install",)) | {"yarn-1": ("add", "--non-interactive")}
        return self.run(name, *command.get(name, ("add",)), *packages, cwd=place, status=status)

    def required(self, place: Path, *names: str) -> str:
        """Return the values that installed packages export, ``name@version``, with spaces between them."""
        script = "process.stdout.write(process.argv.slice(1).map(name => require(name)).join(' '))"
        return run_client([program("node"), "-e", script, "--", *names], environ=self.environ, folder=place).stdout

    def _place(self, title: str) -> Path:
        place = self.folder / title.replace("/", "-")
        place.mkdir()
        return place

    def _yarnrc(self, place: Path) -> None:
        """Write the settings of yarn 4, which reads no .npmrc, and a lockfile, which marks a project root."""
        lines = [
            f'npmRegistryServer: "{self.registry.url.rstrip("/")}"',
            'unsafeHttpWhitelist: ["127.0.0.1"]',
            "nodeLinker: node-modules",
            "npmMinimalAgeGate: 0",
            "enableImmutableInstalls: false",
        ]
        if self.token is not None:
            lines += [f'npmAuthToken: "{self.token}"', "npmAlwaysAuth: true"]
        (place / ".yarnrc.yml").write_text("\n".join(lines) + "\n")
        if not (place / "yarn.lock").exists():
            (place / "yarn.lock").write_text("")
