"""Users, images and logged-in client programs for servers with container repositories."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.client_programs import client, client_environment, run_client
from tests.support.http_client import HttpClient, Reply
from tests.support.images import Image, digest_of
from tests.support.server_process import ServerProcess

ADMIN = ("admin", "correct horse battery")
BOB = ("bob", "staple battery horse")


def host_of(process: ServerProcess) -> str:
    """Return the host and port at the beginning of image names."""
    return urlsplit(process.url).netloc


def add_bob(wire: HttpClient, *repositories: str) -> None:
    """Make the user bob with read and write permission for these repositories."""
    ok(wire.post_json("/api/users", {"username": BOB[0], "password": BOB[1]}))
    given = [{"repository": each, "actions": ["read", "write"]} for each in repositories]
    ok(wire.post_json(f"/api/users/{BOB[0]}/permissions", {"repositories": given}, "PUT"))


def push_image(wire: HttpClient, name: str, image: Image, *references: str) -> None:
    """Push an image with its blobs, by its digest if there are no ``references``."""
    for blob in image.blobs:
        digest = digest_of(blob)
        reply = ok(wire.post(f"/v2/{name}/blobs/uploads/?digest={digest}", blob))
        if reply.status == 202:  # OCI distribution 1.1, "Single POST": a registry may want the blob by PUT instead
            path = reply.headers["location"].removeprefix(wire.url)
            ok(wire.put(f"{path}{'&' if '?' in path else '?'}digest={digest}", blob))
    for reference in references or (image.digest,):
        ok(wire.put(f"/v2/{name}/manifests/{reference}", image.manifest, Content_Type=image.media_type))


def ok(reply: Reply) -> Reply:
    """Return the response if its status is below 300; otherwise fail."""
    assert reply.status < 300, (reply.status, reply.body)
    return reply


class ContainerClients:
    """
    Client programs with a home of their own below ``folder``.

    They are anonymous until ``log_in``, which writes docker's configuration file; all of them read that file.
    """

    def __init__(self, folder: Path, host: str) -> None:
        self.folder = folder
        self.host = host
        self.home = folder / "home"
        self.environ = client_environment(self.home, DOCKER_CONFIG=str(self.home / ".docker"), TMPDIR=str(folder))

    def log_in(self, user: str, password: str) -> None:
        kept = {"auths": {self.host: {"auth": b64encode(f"{user}:{password}".encode()).decode()}}}
        (self.home / ".docker").mkdir(exist_ok=True)
        (self.home / ".docker" / "config.json").write_text(json.dumps(kept))

    def log_out(self) -> None:
        (self.home / ".docker" / "config.json").unlink()

    def run(self, name: str, *arguments: str | Path, status: int | None = 0) -> str:
        """Run the pinned client of that name, and return its output."""
        return self.call(client(name), *arguments, status=status)

    def call(self, program: Path, *arguments: str | Path, status: int | None = 0) -> str:
        """Run any program, and return its output."""
        return run_client([program, *arguments], environ=self.environ, folder=self.folder, status=status).stdout
