"""
Runs S3 servers for tests, each with a temporary folder and a port of its own on 127.0.0.1.

versitygw checks signatures and checksums, and keeps its objects over a restart. moto does neither, but is another
implementation of the documents of the protocol, and of how it answers wrong requests.
"""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import requests
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from pkgrepo.s3.places import AccessKey, BucketPlace
from tests.support.client_programs import CLIENTS, client, client_environment
from tests.support.ports import closed_port
from tests.support.timeouts import TIMEOUT_S

KEY = AccessKey("testkey", "test-secret-of-the-bucket")
REGION = "us-east-1"
BUCKET = "packages"


@contextmanager
def s3_server(
    port: int | None = None,
    folder: Path | None = None,
    *options: str | Path,
    kind: str = "versitygw",
    host: str = "127.0.0.1",
) -> Iterator[S3Server]:
    """
    Run versitygw or moto with an empty bucket; versitygw over a new folder or one of an earlier server.

    ``host`` is an address of this machine.

    ``options`` are further ones of versitygw; with a certificate (``--cert``) it speaks TLS.
    """
    program = client(kind, PROGRAMS[kind])
    with tempfile.TemporaryDirectory(prefix="s3") as name:
        server = SERVERS[kind](program, folder or Path(name), port or closed_port(), options, host)
        server.start()
        try:
            yield server
        finally:
            server.kill()


class S3Server:
    """A server process with one bucket."""

    def __init__(
        self, program: Path, folder: Path, port: int, options: Sequence[str | Path] = (), host: str = "127.0.0.1"
    ) -> None:
        self._program = program
        self._folder = folder
        self._host = host
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None
        self._options = options
        certificate = options[options.index("--cert") + 1] if "--cert" in options else None
        self._verify = True if certificate is None else str(certificate)
        self.endpoint = f"{'http' if certificate is None else 'https'}://{host}:{port}"

    @property
    def objects(self) -> Path:
        """The folder in which versitygw keeps the objects of the bucket, by their names."""
        return self._folder / "files" / BUCKET

    def place(self, prefix: str = "") -> BucketPlace:
        """Return the bucket, with a prefix."""
        return BucketPlace(endpoint=self.endpoint, bucket=BUCKET, region=REGION, prefix=prefix, key=KEY)

    def settings(self, prefix: str) -> dict[str, str]:
        """Return the settings of a storage in the bucket."""
        key = {"access_key_id": KEY.id, "secret_access_key": KEY.secret}
        return {"endpoint": self.endpoint, "bucket": BUCKET, "prefix": prefix, **key}

    def command(self) -> list[str | Path]:
        """Return the command that serves until it is killed."""
        files, sidecar = self._folder / "files", self._folder / "sidecar"
        for each in (files, sidecar):
            each.mkdir(exist_ok=True)
        options = ["--port", f"{self._host}:{self._port}", "--access", KEY.id, "--secret", KEY.secret, "--keep-alive"]
        options += ["--quiet", "--region", REGION]
        return [self._program, *options, *self._options, "posix", "--sidecar", sidecar, files]

    def start(self) -> None:
        """Start it, also again after ``kill``; returns when it answers."""
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self.command(),
                env=client_environment(self._folder / "home"),
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        until = time.monotonic() + TIMEOUT_S
        while True:
            try:
                status = self._make_bucket()
            except requests.RequestException:
                status = None
            if status in (200, 409):
                return
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(
                    f"{self._program.name} does not answer ({status}):\n{(self._folder / 'log').read_text()}"
                )
            time.sleep(0.05)

    def publish(self) -> None:
        """Let anyone read the objects of the bucket."""
        rule = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{BUCKET}/*"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [rule]}).encode()
        assert self._put(f"{BUCKET}?policy", policy) in (200, 204)

    def kill(self) -> None:
        """Kill it as a crash does."""
        self.signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait(TIMEOUT_S)

    def signal(self, number: int) -> None:
        """Send it a signal."""
        if self._process is not None:
            self._process.send_signal(number)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop it for a while, as a machine does that has no memory left; its connections stay open."""
        self.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.signal(signal.SIGCONT)

    def _make_bucket(self) -> int:
        return self._put(BUCKET, b"")

    def _put(self, path: str, data: bytes) -> int:
        request = AWSRequest("PUT", f"{self.endpoint}/{path}", data=data)
        S3SigV4Auth(Credentials(KEY.id, KEY.secret), "s3", REGION).add_auth(request)
        sent = {"data": data, "headers": dict(request.headers), "timeout": TIMEOUT_S, "verify": self._verify}
        return requests.put(request.url, **sent).status_code


class MotoServer(S3Server):
    """The same by moto, which keeps its objects in memory."""

    def command(self) -> list[str | Path]:
        return [self._program, "-H", self._host, "-p", str(self._port)]


PROGRAMS = {"versitygw": "versitygw", "moto": "moto_server"}
SERVERS: dict[str, type[S3Server]] = {"versitygw": S3Server, "moto": MotoServer}


def is_installed(kind: str) -> bool:
    """Whether bin/test has installed a server."""
    return (CLIENTS / kind / ".installed").exists()
