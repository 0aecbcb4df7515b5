"""cargo as a client program, with packages, caches and configuration of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tests.support.client_programs import client_environment, program, run_client

NAME = "team"  # of the registry in its configuration
PLAIN = """\
[package]
name = "{name}"
version = "{version}"
edition = "2021"
license = "MIT"
description = "{name} of a test"
"""


class CargoBench:
    """
    A folder in which cargo runs. ``url`` is the address of a repository without a slash at the end; ``token`` is sent
    to it. With ``mirror`` it stands for the public registry.
    """

    def __init__(self, folder: Path, url: str, token: str = "", *, mirror: bool = False) -> None:
        self.folder = folder
        self.url = url
        self._cargo = program("cargo")
        self.home = folder / "home" / "cargo"
        self.home.mkdir(parents=True)
        toolchains = os.environ.get("RUSTUP_HOME") or str(Path.home() / ".rustup")
        self.environ = client_environment(folder / "home", CARGO_HOME=str(self.home), RUSTUP_HOME=toolchains)
        if token:
            self.environ[f"CARGO_REGISTRIES_{NAME.upper()}_TOKEN"] = token
        lines = f'[registries.{NAME}]\nindex = "sparse+{url}/index/"\n'
        lines += '[registry]\nglobal-credential-providers = ["cargo:token"]\n'
        if mirror:
            lines += f'[source.crates-io]\nreplace-with = "{NAME}"\n'
        (self.home / "config.toml").write_text(lines)

    def package(
        self, name: str, version: str = "0.1.0", more: str = "", *, files: Mapping[str, str] | None = None
    ) -> Path:
        """Write a library, or a program if it has ``src/main.rs``; ``more`` are further lines of its Cargo.toml."""
        place = self.folder / f"{name}-{version}"
        for path, text in {"Cargo.toml": PLAIN.format(name=name, version=version) + more, **(files or {})}.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_text(text)
        if not (place / "src").exists():
            (place / "src").mkdir()
            (place / "src" / "lib.rs").write_text("pub fn answer() -> i32 { 42 }\n")
        return place

    def run(self, place: Path, *arguments: str, status: int = 0) -> str:
        """Run cargo in a package, and return its output."""
        return run_client([self._cargo, *arguments], environ=self.environ, folder=place, status=status).stdout

    def publish(self, place: Path, *arguments: str, status: int = 0) -> str:
        """``cargo publish`` without building the package before."""
        words = ("publish", "--registry", NAME, "--no-verify", "--allow-dirty")
        return self.run(place, *words, *arguments, status=status)
