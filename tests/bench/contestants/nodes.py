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
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.bench.clients.load import LoadFailed
from tests.bench.measure import ProcessTree

from .container import Distribution, Distribution3, PkgrepoImages
from .maven import PkgrepoMaven
from .npm import PkgrepoNpm
from .pkgrepo import Pkgrepo
from .python import PkgrepoPython
from .server import LOOPBACK, ROOT, START_LIMIT_S, Contestant, Program, Unavailable, free_port, variant

POSTGRESQL = Path("/usr/lib/postgresql/15/bin")
# PostgreSQL refuses to be run by root.
UNPRIVILEGED: Mapping[str, Any] = {"user": "nobody", "group": "nogroup", "extra_groups": []}
VERSITYGW = ROOT / ".cache" / "clients" / "versitygw" / "bin" / "versitygw"
BUCKET = "bench"
OWN = ("PKGREPO_DATA__DIR", "PKGREPO_SERVER__LISTEN")  # the variables of a node that other nodes do not share
KEY_ID, SECRET, REGION = "bench-key", "bench-secret-of-the-bucket", "us-east-1"


class Bucket(Program):
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
        super().__init__(folder, [VERSITYGW, *options, "--keep-alive", "--quiet", "posix", "--sidecar", sidecar, files])
        self.await_socket(socket.AF_INET, (LOOPBACK, port))


class Database(Program):
    """A PostgreSQL server, on a Unix socket."""

    def __init__(self, folder: Path) -> None:
        if not (POSTGRESQL / "postgres").exists():
            raise Unavailable("PostgreSQL is not installed (bin/test installs it)")
        options = {} if os.geteuid() else UNPRIVILEGED
        folder.mkdir(parents=True, exist_ok=True)
        if options:
            shutil.chown(folder, options["user"], options["group"])
        if not (folder / "data").exists():
            how = ["--auth=trust", "--username=pkgrepo", "--encoding=UTF8"]
            command = [str(POSTGRESQL / "initdb"), "-D", str(folder / "data"), *how]
            subprocess.run(command, cwd=folder, capture_output=True, timeout=START_LIMIT_S, check=True, **options)
        settings = [f"--unix_socket_directories={folder}", "--listen_addresses=", "--shared_buffers=256MB"]
        super().__init__(folder, [POSTGRESQL / "postgres", "-D", folder / "data", *settings], **options)
        self.await_socket(socket.AF_UNIX, str(folder / ".s.PGSQL.5432"))
        self.url = "postgresql:///?" + urlencode({"host": folder, "user": "pkgrepo", "dbname": "postgres"})


class Aided(Contestant):
    """A contestant that needs other programs, which start before it and end after it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._aids: list[Program] = []

    def start(self) -> None:
        try:
            self.start_aids()
            super().start()
        except BaseException:
            self.stop()
            raise

    def start_aids(self) -> None:
        """Start what it needs."""

    def stop(self) -> None:
        super().stop()
        while self._aids:
            self._aids.pop().stop()


class OnDatabase(Aided, Pkgrepo):
    """One process on a database server of its own."""

    _database: Database

    def start_aids(self) -> None:
        super().start_aids()
        self._database = Database(short_folder(self.folder))
        self._aids.append(self._database)

    def discard(self) -> None:
        super().discard()
        shutil.rmtree(short_folder(self.folder), ignore_errors=True)

    def environment(self) -> Mapping[str, str]:
        return {**super().environment(), "PKGREPO_DATABASE__URL": self._database.url}


class OnBucket(Aided):
    """One process on a bucket of its own."""

    _bucket: Bucket

    def start_aids(self) -> None:
        super().start_aids()
        folder = self.folder / "bucket"
        folder.mkdir(parents=True, exist_ok=True)
        self._bucket = Bucket(folder)
        self._aids.append(self._bucket)


class Node(OnBucket, OnDatabase):
    """One node on a database and a bucket."""

    storage = "cloud"

    def environment(self) -> Mapping[str, str]:
        return {**super().environment(), "PKGREPO_DATA__STORAGES": str(self.folder / "storages")}

    def prepare(self) -> None:
        settings = {
            "endpoint": self._bucket.endpoint,
            "bucket": BUCKET,
            "region": REGION,
            "access_key_id": KEY_ID,
            "secret_access_key": SECRET,
        }
        with contextlib.suppress(LoadFailed):  # it is there after the first start
            self.ask("storage", {"name": self.storage, "type": "S3", "settings": settings})
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
    """Two nodes; ``other_url`` is the address of the second one."""

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


NODE_NPM, NODE_IMAGES = (variant(f"{base.name}-node", Node, base).name for base in (PkgrepoNpm, PkgrepoImages))
NODES_NPM, NODES_PYTHON, NODES_MAVEN = (
    variant(f"{base.name}-nodes", TwoNodes, base).name for base in (PkgrepoNpm, PkgrepoPython, PkgrepoMaven)
)


class BucketDistribution(OnBucket, Distribution):
    """Distribution with its S3 driver."""

    name = f"{Distribution.name}-s3"

    def environment(self) -> Mapping[str, str]:
        return {**super().environment(), "AWS_CA_BUNDLE": ""}

    def driver(self) -> str:
        key = f"accesskey: {KEY_ID}, secretkey: {SECRET}"
        place = f"region: {REGION}, bucket: {BUCKET}, regionendpoint: '{self._bucket.endpoint}'"
        return f"s3: {{{key}, {place}, secure: false, forcepathstyle: true}}\n  redirect: {{disable: true}}"


RIVALS = (BucketDistribution.name, variant(f"{Distribution3.name}-s3", BucketDistribution, Distribution3).name)


def short_folder(folder: Path) -> Path:
    """A folder for the database: paths of Unix sockets have at most 107 bytes."""
    return Path(tempfile.gettempdir()) / f"pkgrepo-bench-{os.getpid()}-{folder.name}"
