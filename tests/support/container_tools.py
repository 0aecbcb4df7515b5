"""skopeo, podman and buildah of the system."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.support.client_programs import client_environment, program, run_client
from tests.support.container_clients import ADMIN
from tests.support.images import make_image, write_layout

USER, PASSWORD = ADMIN
CREDS = f"{USER}:{PASSWORD}"


class Tools:
    """Runs the programs with their storage in a folder, and with a policy that accepts unsigned images."""

    def __init__(self, folder: Path, runroot: Path) -> None:
        self.folder = folder
        self.runroot = runroot
        self.environ: Mapping[str, str] = client_environment(
            folder / "home", XDG_RUNTIME_DIR=str(folder / "run"), STORAGE_DRIVER="vfs", TMPDIR=str(folder)
        )
        (folder / "run").mkdir()
        self.policy = folder / "policy.json"
        self.policy.write_text('{"default":[{"type":"insecureAcceptAnything"}]}')

    def skopeo(self, *arguments: str | Path, status: int | None = 0) -> str:
        command = [program("skopeo"), "--policy", self.policy, *arguments]
        return run_client(command, environ=self.environ, folder=self.folder, status=status).stdout

    def podman(self, *arguments: str | Path, status: int | None = 0, name: str = "podman") -> str:
        storage = ["--root", self.folder / "root", "--runroot", self.runroot, "--storage-driver", "vfs"]
        command = [program(name), *storage, *arguments]
        return run_client(command, environ=self.environ, folder=self.folder, status=status).stdout

    def layout(self, text: str = "hello") -> str:
        """Write an OCI layout with one image. Returns its name for skopeo."""
        folder = self.folder / f"layout-{text}"
        if not folder.exists():
            write_layout(folder, make_image(text))
        return f"oci:{folder}:v1"

    def push(self, text: str, image: str, creds: str = CREDS, status: int | None = 0) -> str:
        auth = ["--dest-creds", creds] if creds else ["--dest-no-creds"]
        return self.skopeo(
            "copy", "--dest-tls-verify=false", *auth, self.layout(text), f"docker://{image}", status=status
        )
