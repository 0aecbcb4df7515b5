"""
Two nodes of two workers each, on one PostgreSQL server and one bucket of an S3 server.

The second node is in a network namespace, from where its connections to both servers can be cut. The data of the
PostgreSQL server are on a disk of their own, whose power is cut; what the S3 server acknowledges is in memory only, so
that it is killed, and its disk stays.
"""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import psycopg
import pytest
from attrs import define

from pkgrepo.storage.catalog.postgresql.changes import RECHECK_S
from pkgrepo.storage.catalog.postgresql.sessions import PACE
from tests.lab.faults.nemesis.disks import Site, site
from tests.lab.faults.nemesis.pairs import pairs
from tests.lab.faults.nemesis.processes import (
    WORKER,
    freeze,
    kill_all,
    kill_worker,
    kill_workers,
    thaw,
    wait_until_closed,
)
from tests.support import server_process
from tests.support.forked_programs import run_pkgrepo
from tests.support.network_namespaces import CUTS, FarMachine, far_machine
from tests.support.nodes import Nodes
from tests.support.ports import closed_port
from tests.support.postgresql import NEW_ON_DISK, PLACE, SAFE, PostgresServer, as_url
from tests.support.s3_servers import BUCKET, KEY, REGION, S3Server, s3_server
from tests.support.server_process import clean_environment

from .estate import Engine, Fault, Written, wait_until_ready

DATABASE: Final = "lab"
AWAY_S: Final = (0.5, 0.5, 1.0, 1.0, 2.0, 4.0, 12.0)  # of pauses and cuts; connections are given up after 10
STALE_S: Final = PACE.trusted_s + RECHECK_S + 0.5  # how long a node that could not ask may serve what it has in memory
STORAGE: Final = """
[[bootstrap.storages]]
name = "main"
type = "S3"
settings = {{ endpoint = "{endpoint}", bucket = "{bucket}", region = "{region}", prefix = "lab/" }}
"""


@define
class Servers:
    """What nodes need. ``port`` is that of the PostgreSQL server, for the far machine; None without one."""

    database: PostgresServer
    bucket: S3Server
    disk: Site
    far: FarMachine | None
    port: int
    why_near: str = ""


class TwoNodes:
    """See L{Estate}."""

    def __init__(self, folder: Path, servers: Servers, configuration: str) -> None:
        self._servers = servers
        self._dead = {"bucket": False, "database": False}
        self._stale_until = 0.0
        address = servers.database.address.replace("dbname=postgres", f"dbname={DATABASE}")
        declared = STORAGE.format(endpoint=servers.bucket.endpoint, bucket=BUCKET, region=REGION)
        self._nodes = Nodes(
            folder,
            address,
            configuration + declared,
            {"AWS_ACCESS_KEY_ID": KEY.id, "AWS_SECRET_ACCESS_KEY": KEY.secret, "PKGREPO_DATA__STORAGES": ""},
        )
        self._written = Written()
        self.data = None
        self._nodes.written = self._written.lines
        far = servers.far
        hosts = ["127.0.0.1", "127.0.0.1" if far is None else far.far]
        self._places = [(host, closed_port()) for host in hosts]
        self.urls = [f"http://{host}:{port}" for host, port in self._places]
        self._own: list[dict[str, str]] = [
            {"PKGREPO_SERVER__LISTEN": f"tcp:{port}:interface={host}"} for host, port in self._places
        ]
        if far is not None:
            self._own[1]["PKGREPO_DATABASE__URL"] = as_url(
                f"host={far.near} port={servers.port} user=pkgrepo dbname={DATABASE}"
            )
        self.left_out = [each for each in (servers.disk.why, servers.why_near) if each]
        self.faults = self._every_fault()

    def _every_fault(self) -> list[Fault]:
        database = self._servers.database
        stops: Mapping[str, Callable[[], None]] = {
            "kill -9 of PostgreSQL": database.kill,
            "immediate stop of PostgreSQL": partial(database.stop, signal.SIGQUIT),
            "restart of PostgreSQL": database.stop,
        }
        cuts = {"the database": [self._servers.port], "the bucket": [self._bucket_port], "both": self._ports}
        every = [
            Fault("kill -9 of a node", 24, self._kill_node, is_deadly=True),
            Fault(WORKER, 6, self._kill_worker),
            Fault("one worker after the other", 14, self._kill_workers),
            Fault("restart of a node", 6, self._stop_node, is_deadly=True),
            *[
                Fault(name, 7, partial(self._stop_database, how), is_deadly=True, is_told=True)
                for name, how in stops.items()
            ],
            Fault("kill -9 of the S3 server", 6, self._kill_bucket, is_deadly=True, is_told=True),
            Fault("a node stopped for some time", 14, self._pause_node, is_told=True),  # its session may be ended
            Fault("PostgreSQL stopped for some time", 10, self._pause_database, is_told=True),
            Fault("the S3 server stopped for some time", 8, self._pause_bucket, is_told=True),
        ]
        if self._servers.disk.cut is not None:
            every.append(Fault("power cut of PostgreSQL", 6, self._cut_power, is_deadly=True, is_told=True))
        if self._servers.far is not None:
            every += [
                Fault(
                    f"network between a node and {what}: {how}", 1, partial(self._cut_network, ports, how), is_told=True
                )
                for what, ports in cuts.items()
                for how in CUTS
            ]
        return [*every, *pairs(self, every, two=5, deaths=8)]

    @property
    def _bucket_port(self) -> int:
        return int(self._servers.bucket.endpoint.rpartition(":")[2])

    @property
    def _ports(self) -> list[int]:
        return [self._servers.port, self._bucket_port]

    def begin(self) -> None:
        if self._dead["database"]:
            self._servers.database.restart()
            self._dead["database"] = False
        if self._dead["bucket"]:
            self._servers.bucket.start()
            self._dead["bucket"] = False
        for number in range(2):
            if number not in self._nodes.processes:
                far = self._servers.far if number else None
                self._nodes.begin(number, self._own[number], None if far is None else far.launcher)

    def mend(self, after: Fault | None = None) -> None:
        self.begin()
        for number, url in enumerate(self.urls):
            try:
                self._nodes.processes[number].wait_ready()
            except AssertionError:
                if after is None or not after.is_told:
                    raise
                del self._nodes.processes[number]
                self.begin()
                self._nodes.processes[number].wait_ready()
            wait_until_ready(url)

    def settle(self) -> None:
        time.sleep(max(0.0, self._stale_until - time.monotonic()))

    def outputs(self) -> list[str]:
        return self._written.every()

    def said(self, after: Fault) -> list[str]:
        return self._written.tracebacks(after)

    def renew(self) -> None:
        pass

    def end(self) -> list[str]:
        for number in list(self._nodes.processes):
            self._nodes.stop_one(number)
        settings = {"data.dir": str(self._nodes.data(0)), "database.url": as_url(self._nodes.database)}
        variables = {f"PKGREPO_{name.upper().replace('.', '__')}": value for name, value in settings.items()}
        variables |= {"AWS_ACCESS_KEY_ID": KEY.id, "AWS_SECRET_ACCESS_KEY": KEY.secret}
        done = run_pkgrepo("verify", environ=clean_environment(**variables))
        return [f"pkgrepo verify: {done.stdout}{done.stderr}"] if done.returncode else []

    def close(self) -> None:
        """Kill the nodes that run."""
        for process in self._nodes.processes.values():
            kill_all(process)

    def _lose_sight(self) -> None:
        """Note that a node may serve for some time what it has in memory."""
        self._stale_until = time.monotonic() + STALE_S

    def _kill_node(self, rng: random.Random) -> None:
        kill_all(self._nodes.processes.pop(rng.choice([*self._nodes.processes])))

    def _stop_node(self, rng: random.Random) -> None:
        """SIGTERM, as in a rolling upgrade; the other node goes on."""
        self._nodes.processes.pop(rng.choice([*self._nodes.processes])).stop()

    def _kill_worker(self, rng: random.Random) -> None:
        kill_worker(rng.choice([*self._nodes.processes.values()]), rng)

    def _kill_workers(self, rng: random.Random) -> list[str]:
        return kill_workers([*self._nodes.processes.values()], rng)

    def _pause_node(self, rng: random.Random) -> None:
        node = rng.choice([*self._nodes.processes.values()])
        freeze(node)
        time.sleep(rng.choice(AWAY_S))
        thaw(node)
        self._lose_sight()

    def _stop_database(self, how: Callable[[], None], _rng: random.Random) -> None:
        how()
        self._dead["database"] = True
        self._lose_sight()

    def _kill_bucket(self, _rng: random.Random) -> None:
        self._servers.bucket.kill()
        self._dead["bucket"] = True

    def _pause_database(self, rng: random.Random) -> None:
        self._servers.database.signal(signal.SIGSTOP)
        time.sleep(rng.choice(AWAY_S))
        self._servers.database.signal(signal.SIGCONT)
        self._lose_sight()

    def _pause_bucket(self, rng: random.Random) -> None:
        with self._servers.bucket.paused():
            time.sleep(rng.choice(AWAY_S))

    def _cut_power(self, _rng: random.Random) -> None:
        """Stop the database, discard what was not synced, and mount its disk again."""
        database = self._servers.database
        pids = database.pids
        database.signal(signal.SIGSTOP)
        database.kill()
        wait_until_closed(pids)
        assert self._servers.disk.cut is not None
        self._servers.disk.cut()
        self._dead["database"] = True
        self._lose_sight()

    def _cut_network(self, ports: list[int], how: str, rng: random.Random) -> None:
        far = self._servers.far
        assert far is not None
        for port in ports:
            far.cut(port, how)
        time.sleep(rng.choice(AWAY_S))
        far.heal()
        if self._servers.port in ports:
            self._lose_sight()


@contextmanager
def two_nodes(folder: Path, configuration: str) -> Iterator[TwoNodes]:
    """Run the servers and both nodes in a new folder."""
    server_process.WORKERS[0] = "2"
    with ExitStack() as stack:
        servers = _servers(folder, stack)
        nodes = TwoNodes(folder, servers, configuration)
        stack.callback(nodes.close)
        nodes.mend()
        yield nodes


def _servers(folder: Path, stack: ExitStack) -> Servers:
    far, why = None, ""
    try:
        far = stack.enter_context(far_machine())
    except pytest.skip.Exception as error:
        why = str(error)
    disk = stack.enter_context(site(_open_to_all(folder, stack)))
    place = disk.folder / "postgresql"
    place.mkdir()
    near, port = "127.0.0.1" if far is None else far.near, closed_port()
    database = PostgresServer(place, NEW_ON_DISK, {**SAFE, "listen_addresses": near, "port": str(port)})
    stack.callback(database.kill)
    stack.callback(database.signal, signal.SIGCONT)
    database.wait_ready()
    if far is not None:
        database.admit(f"{far.far}/32")
        database.signal(signal.SIGHUP)
    with psycopg.connect(database.address, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {DATABASE}")
    (objects := folder / "objects").mkdir()
    bucket = stack.enter_context(s3_server(None, objects, host=near))
    return Servers(database, bucket, disk, far, port, why)


def _open_to_all(folder: Path, stack: ExitStack) -> Path:
    """The folder, or a temporary one, into which the unprivileged user can go that PostgreSQL has instead of root."""
    folder.chmod(0o755)
    if all(each.stat().st_mode & 1 for each in (folder, *folder.parents)):
        return folder
    found = Path(stack.enter_context(TemporaryDirectory(prefix="pg", dir=PLACE)))
    found.chmod(0o755)
    return found


NODES: Final = Engine(
    "nodes",
    "two nodes with two workers each, PostgreSQL, a bucket of an S3 server",
    two_nodes,
    is_near=False,
    lag_s=STALE_S,
)
