"""
This checkout on PostgreSQL and a bucket, as one node or as two, and registries of images over a bucket.

Each has a database server and a bucket of its own: PostgreSQL as its package configures it, so that a commit waits for
the disk, and versitygw over a folder. Both are beside the processes whose cost is measured.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.bench.clients.load import LoadFailed, basic, send_json
from tests.bench.measure import ProcessTree

from .container import Distribution, Distribution3, PkgrepoImages
from .maven import PkgrepoMaven
from .npm import PkgrepoNpm
from .python import PkgrepoPython
from .server import LOOPBACK, ROOT, START_LIMIT_S, STOP_LIMIT_S, Pkgrepo, Unavailable, free_port

POSTGRESQL = Path("/usr/lib/postgresql/15/bin")
# PostgreSQL refuses to be run by root.
UNPRIVILEGED: Mapping[str, Any] = {"user": "nobody", "group": "nogroup", "extra_groups": []}
VERSITYGW = ROOT / ".cache" / "clients" / "versitygw" / "bin" / "versitygw"
BUCKET = "bench"
OWN = ("PKGREPO_DATA__DIR", "PKGREPO_SERVER__LISTEN")  # the variables of a node that other nodes do not share
KEY_ID, SECRET, REGION = "bench-key", "bench-secret-of-the-bucket", "us-east-1"


class Program:
    """A server that a contestant needs, in a folder of its own."""

    def __init__(self, folder: Path, command: Sequence[str | Path], **options: Any) -> None:
        with (folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(each) for each in command],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                **options,
            )
        self._folder = folder

    def await_socket(self, family: int, address: Any) -> None:
        """
        Return when it accepts connections.

        :raises Unavailable: it ended, or did not in two minutes
        """
        until = time.monotonic() + START_LIMIT_S
        while time.monotonic() < until and self._process.poll() is None:
            with contextlib.suppress(OSError), socket.socket(family) as probe:
                probe.connect(address)
                return
            time.sleep(0.02)
        lines = (self._folder / "log").read_text(errors="replace").strip().splitlines()
        self.stop()
        raise Unavailable(f"{self._folder.name} does not answer: {' / '.join(lines[-3:])}")

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        try:
            self._process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(STOP_LIMIT_S)


class Bucket:
    """An S3 server with one bucket."""

    def __init__(self, folder: Path) -> None:
        if not VERSITYGW.exists():
            raise Unavailable("versitygw is not installed (bin/test installs it)")
        files, sidecar = folder / "files", folder / "sidecar"
        for each in (files / BUCKET, sidecar):  # a bucket is a folder
            each.mkdir(parents=True, exist_ok=True)
        port = free_port()
        self.endpoint = f"http://{LOOPBACK}:{port}"
        options = ["--port", f"{LOOPBACK}:{port}", "--access", KEY_ID, "--secret", SECRET, "--region", REGION]
        self._program = Program(
            folder, [VERSITYGW, *options, "--keep-alive", "--quiet", "posix", "--sidecar", sidecar, files]
        )
        self._program.await_socket(socket.AF_INET, (LOOPBACK, port))

    def stop(self) -> None:
        """End it."""
        self._program.stop()


class Database:
    """A PostgreSQL server, on a Unix socket."""

    def __init__(self, folder: Path) -> None:
        if not (POSTGRESQL / "postgres").exists():
            raise Unavailable("PostgreSQL is not installed (bin/test installs it)")
        options = {} if os.geteuid() else UNPRIVILEGED
        folder.mkdir(parents=True, exist_ok=True)
        if options:
            shutil.chown(folder, options["user"], options["group"])
        if not (folder / "data").exists():
            command = [POSTGRESQL / "initdb", "-D", folder / "data"]
            command += ["--auth=trust", "--username=pkgrepo", "--encoding=UTF8"]
            subprocess.run(command, cwd=folder, capture_output=True, timeout=START_LIMIT_S, check=True, **options)
        settings = [f"--unix_socket_directories={folder}", "--listen_addresses=", "--shared_buffers=256MB"]
        self._program = Program(folder, [POSTGRESQL / "postgres", "-D", folder / "data", *settings], **options)
        self._program.await_socket(socket.AF_UNIX, str(folder / ".s.PGSQL.5432"))
        self.url = "postgresql:///?" + urlencode({"host": folder, "user": "pkgrepo", "dbname": "postgres"})

    def stop(self) -> None:
        """End it."""
        self._program.stop()


class OnDatabase(Pkgrepo):
    """One process on a database server of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._database: Database | None = None

    def start(self) -> None:
        self._database = Database(short_folder(self.folder))
        super().start()

    def stop(self) -> None:
        super().stop()
        database, self._database = self._database, None
        if database is not None:
            database.stop()

    def discard(self) -> None:
        super().discard()
        shutil.rmtree(short_folder(self.folder), ignore_errors=True)

    def environment(self) -> Mapping[str, str]:
        assert self._database is not None, "the database is started before"
        return {**super().environment(), "PKGREPO_DATABASE__URL": self._database.url}


class Node(OnDatabase):
    """One node on a database and a bucket."""

    storage = "cloud"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._bucket: Bucket | None = None

    def start(self) -> None:
        folder = self.folder / "bucket"
        folder.mkdir(parents=True, exist_ok=True)
        self._bucket = Bucket(folder)
        try:
            super().start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        super().stop()
        bucket, self._bucket = self._bucket, None
        if bucket is not None:
            bucket.stop()

    def environment(self) -> Mapping[str, str]:
        return {**super().environment(), "PKGREPO_DATA__STORAGES": str(self.folder / "storages")}

    def prepare(self) -> None:
        assert self._bucket is not None, "the bucket is started before"
        settings = {
            "endpoint": self._bucket.endpoint,
            "bucket": BUCKET,
            "region": REGION,
            "access_key_id": KEY_ID,
            "secret_access_key": SECRET,
        }
        storage = {"name": self.storage, "type": "S3", "settings": settings}
        with contextlib.suppress(LoadFailed):  # it is there after the first start
            send_json("POST", f"{self.base_url}/api/storage", storage, basic(self.user, self.password))
        super().prepare()


class Follower(Pkgrepo):
    """A further node of a L{Node}: the same program with the same key, and a data folder of its own."""

    def __init__(self, first: TwoNodes) -> None:
        super().__init__(first.folder / "second")
        self._first = first

    def environment(self) -> Mapping[str, str]:
        own = super().environment()
        return {**self._first.environment(), **{key: own[key] for key in OWN}}


class TwoNodes(Node):
    """Two nodes; C{other_url} is the address of the second one."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._follower: Follower | None = None

    def start(self) -> None:
        super().start()
        follower = Follower(self)
        follower.data.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.data / "credentials.key", follower.data)
        self._follower = follower
        try:
            follower.start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        follower, self._follower = self._follower, None
        if follower is not None:
            follower.stop()
        super().stop()

    @property
    def other_url(self) -> str:
        """The address of the second node, with no slash at its end."""
        assert self._follower is not None, "it is asked for while both run"
        return self._follower.base_url

    @property
    def tree(self) -> ProcessTree:
        assert self._follower is not None, "it is asked for while both run"
        return ProcessTree(*super().tree.roots, *self._follower.tree.roots)


class NodeNpm(Node, PkgrepoNpm):
    """Of npm packages, one node."""

    name = f"{PkgrepoNpm.name}-node"


class NodesNpm(TwoNodes, PkgrepoNpm):
    """Of npm packages."""

    name = f"{PkgrepoNpm.name}-nodes"


class NodesPython(TwoNodes, PkgrepoPython):
    """Of Python packages."""

    name = f"{PkgrepoPython.name}-nodes"


class NodesMaven(TwoNodes, PkgrepoMaven):
    """Of Maven artifacts."""

    name = f"{PkgrepoMaven.name}-nodes"


class NodeImages(Node, PkgrepoImages):
    """Of images, one node."""

    name = f"{PkgrepoImages.name}-node"


class BucketDistribution(Distribution):
    """Distribution with its S3 driver."""

    name = f"{Distribution.name}-s3"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._bucket: Bucket | None = None

    def start(self) -> None:
        folder = self.folder / "bucket"
        folder.mkdir(parents=True, exist_ok=True)
        self._bucket = Bucket(folder)
        super().start()

    def stop(self) -> None:
        super().stop()
        bucket, self._bucket = self._bucket, None
        if bucket is not None:
            bucket.stop()

    def environment(self) -> Mapping[str, str]:
        return {**super().environment(), "AWS_CA_BUNDLE": ""}

    def driver(self) -> str:
        assert self._bucket is not None, "the bucket is started before"
        key = f"accesskey: {KEY_ID}, secretkey: {SECRET}"
        place = f"region: {REGION}, bucket: {BUCKET}, regionendpoint: '{self._bucket.endpoint}'"
        return f"s3: {{{key}, {place}, secure: false, forcepathstyle: true}}\n  redirect: {{disable: true}}"


class BucketDistribution3(BucketDistribution, Distribution3):
    """The same of the current one."""

    name = f"{Distribution3.name}-s3"


def short_folder(folder: Path) -> Path:
    """A folder for the database: paths of Unix sockets have at most 107 bytes."""
    return Path(tempfile.gettempdir()) / f"pkgrepo-bench-{os.getpid()}-{folder.name}"
