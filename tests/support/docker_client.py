"""docker with its own daemon and configuration."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

from tests.support.client_programs import program
from tests.support.container_clients import ContainerClients


class Docker(ContainerClients):
    """Runs docker with one daemon and its own configuration."""

    def __init__(self, folder: Path, host: str, daemon: str) -> None:
        super().__init__(folder, host)
        self.environ["DOCKER_HOST"] = daemon

    def __call__(self, *arguments: str | Path, status: int | None = 0) -> str:
        return self.call(program("docker"), *arguments, status=status)

    def make(self, image: str, content: str) -> str:
        """Make an image with one file in the daemon. Returns its full name."""
        archive = self.folder / f"{content}.tar"
        with tarfile.open(archive, "w") as tar:
            member = tarfile.TarInfo("content")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content.encode()))
        self("import", archive, f"{self.host}/{image}")
        return f"{self.host}/{image}"

    def digest(self, image: str) -> str:
        """Return the digest that the daemon has recorded for an image of the server."""
        return self("image", "inspect", "--format", "{{index .RepoDigests 0}}", image).strip().partition("@")[2]

    def identity(self, image: str) -> str:
        return self("image", "inspect", "--format", "{{.Id}}", image).strip()
