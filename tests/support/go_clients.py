"""Runs the go command in folders of its own, with a module cache that is its own too."""

from __future__ import annotations

import os
from pathlib import Path

from attrs import define, field

from tests.support.client_programs import client_environment, program, run_client
from tests.support.http_client import HttpClient


@define(eq=False)
class GoBench:
    """A module in a folder; ``proxy`` is GOPROXY, and ``settings`` are further variables."""

    folder: Path
    proxy: str
    settings: dict[str, str] = field(factory=dict)

    @property
    def environ(self) -> dict[str, str]:
        """The environment of the go command."""
        where = {"GOPATH": str(self.folder / "gopath"), "GOCACHE": str(self.folder / "cache"), "GOENV": "off"}
        usual = {"GOFLAGS": "-modcacherw", "GOTOOLCHAIN": "local", "GONOSUMDB": "*", "CGO_ENABLED": "0"}
        return client_environment(self.folder / "home", **{**where, **usual, "GOPROXY": self.proxy, **self.settings})

    def go(self, *words: str, status: int = 0) -> str:
        """Run a command; returns what it printed."""
        done = run_client([program("go"), *words], environ=self.environ, folder=self.place, status=status)
        return done.stdout

    @property
    def place(self) -> Path:
        """The folder of the module, which is made with its go.mod."""
        place = self.folder / "module"
        if not place.exists():
            place.mkdir(parents=True)
            (place / "go.mod").write_text("module example.org/main\n\ngo 1.20\n")
        return place

    @property
    def sums(self) -> list[str]:
        """The lines of go.sum."""
        return (self.place / "go.sum").read_text().splitlines()


def put_module(client: HttpClient, path: str, data: bytes) -> None:
    """Publish a module zip."""
    reply = client.ask("PUT", path, data)
    assert reply.status in (200, 201), reply.text


def configured_proxy() -> tuple[str, str]:
    """The module proxy and the checksum database that the go command uses here."""
    environ = {name: value for name, value in os.environ.items() if name not in ("GOPROXY", "GOFLAGS")}
    done = run_client([program("go"), "env", "GOPROXY", "GOSUMDB"], environ=environ, folder=Path.cwd())
    proxy, database = done.stdout.split("\n")[:2]
    return proxy.partition(",")[0].partition("|")[0].rstrip("/"), database
