"""A fresh home of a new user, in which ``pkgrepo setup`` works and clients run without options."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.client_programs import CLIENTS, client, program, run_client
from tests.support.python_index import PASSWORD, USER

OURS = Path(sys.executable).parent
_SETTINGS = (
    ".npmrc", ".yarnrc", ".pypirc", ".config/pip", ".config/uv/uv.toml", ".config/pypoetry", ".docker", ".condarc",
    ".config/containers/registries", ".cargo/config", ".cargo/credentials", ".gemrc", ".gem/credentials", ".netrc",
    ".bundle/config", ".m2/settings", ".gradle", ".config/go/env", ".config/helm/repositories.yaml",
)  # fmt: skip


class SetupBench:
    """
    A home with nothing in it but the profile of a login.

    ``clients`` are pinned clients of the tests, or programs of the system; the path has these, and pkgrepo's own.
    ``options`` are those of the login.
    """

    def __init__(
        self, folder: Path, url: str, clients: Sequence[str], variables: Mapping[str, str], *options: str
    ) -> None:
        self.folder, self.url = folder, url
        self.home = folder / "home"
        self.home.mkdir()
        tools = folder / "tools"
        tools.mkdir()
        for name in ("pkgrepo", "docker-credential-pkgrepo", "cargo-credential-pkgrepo"):
            if (OURS / name).exists():
                (tools / name).symlink_to(OURS / name)
        path = [str(tools)]
        for name in clients:
            if (CLIENTS / name).is_dir():
                path.append(str(client(name).parent))
            else:
                (tools / name).symlink_to(program(name))
        # what scripts of the clients start
        self.environ = {
            "HOME": str(self.home),
            "PATH": os.pathsep.join([*path, str(program("node").parent), "/usr/bin", "/bin"]),
            "LANG": "C.UTF-8",
            "NO_COLOR": "1",
            "TERM": "dumb",
            "NO_PROXY": "*",
            **variables,
        }
        password = folder / "password"
        password.write_text(PASSWORD)
        self.run("pkgrepo", "login", url, "-u", USER, "--password-file", str(password), *options)
        self.before = self.files()
        self.tokens_before = self.tokens()

    def run(self, *command: str, cwd: Path | None = None, status: int | None = 0, **variables: str) -> str:
        """Run a program, and return what it prints; see ``run_client``."""
        environ = {**self.environ, **variables}
        done = run_client(
            [self._found(command[0]), *command[1:]], environ=environ, folder=cwd or self.folder, status=status
        )
        return done.stdout

    def set_up(self, repository: str, tool: str, *options: str) -> str:
        """Set up one tool; a second time changes nothing."""
        printed = self.run("pkgrepo", "setup", repository, "--write", "--yes", "--tool", tool, *options)
        again = self.run("pkgrepo", "setup", repository, "--write", "--yes", "--tool", tool, *options)
        assert "nothing to change" in again, again
        return printed

    def check(self, repository: str, tool: str, *options: str) -> str:
        """What the check prints; it must find that all works."""
        return self.run("pkgrepo", "setup", repository, "--check", "--tool", tool, *options)

    def undo(self, repository: str) -> None:
        """Undo the set-up; the home must have the files from before, and no token of the set-up is left."""
        self.run("pkgrepo", "setup", repository, "--undo", "--yes")
        assert self.tokens() == self.tokens_before
        left = {name: data for name, data in self.files().items() if name in self.before or self.is_setting(name)}
        assert left == self.before

    def tokens(self) -> int:
        """How many tokens there are that set-ups made."""
        return self.run("pkgrepo", "token", "list").count("pkgrepo setup on")

    def is_setting(self, name: str) -> bool:
        """Whether a file in the home is one that a set-up writes, and no cache of a client."""
        return name.startswith(_SETTINGS)

    def folder_of(self, name: str, files: Mapping[str, str]) -> Path:
        """Make a folder with files."""
        place = self.folder / name
        for path, text in files.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_text(text)
        return place

    def files(self) -> dict[str, bytes]:
        """The files of the home with what is in them, without pkgrepo's own and caches."""
        ours = {
            f".config/pkgrepo/{name}"
            for name in ("setup.json", ".setup.json.lock", "short-lived.json", ".short-lived.json.lock")
        }
        found = {str(each.relative_to(self.home)): each for each in self.home.rglob("*") if each.is_file()}
        return {name: each.read_bytes() for name, each in found.items() if name not in ours}

    def _found(self, name: str) -> str:
        for folder in self.environ["PATH"].split(os.pathsep):
            if (Path(folder) / name).exists():
                return str(Path(folder) / name)
        return name
