"""PostgreSQL catalogs over one database, like those of several nodes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self
from uuid import uuid4

import psycopg
from psycopg.conninfo import conninfo_to_dict
from twisted.internet import reactor

from pkgrepo.storage.catalog.engine.schema import load_schema
from pkgrepo.storage.catalog.postgresql import Address, PostgresCatalog
from pkgrepo.storage.catalog.postgresql.schema import upgrade
from pkgrepo.storage.catalog.postgresql.sessions import PACE, Pace, open_writer
from tests.support.postgresql import PostgresServer
from tests.support.timeouts import TIMEOUT_S

TEMPLATE = "pkgrepo_template"


class PostgresCase:
    """Catalogs on a database of their own, on a server that runs already."""

    one_machine = False  # a commit of another node may be noticed some milliseconds later

    def __init__(self, url: str, replica: str | None = None, pace: Pace = PACE) -> None:
        self.url = url
        self.pace = pace
        self._replica = None if replica is None else Address(replica)
        self.started: list[PostgresCatalog] = []

    async def another(self) -> PostgresCatalog:
        """Return another started catalog on the same database, like that of another node."""
        catalog = PostgresCatalog(Address(self.url), replica=self._replica, reactor=reactor, pace=self.pace)
        await catalog.start()
        self.started.append(catalog)
        return catalog

    async def stop(self) -> None:
        while self.started:
            await self.started.pop().stop()


def replicated(url: str, replica: PostgresServer, pace: Pace = PACE) -> PostgresCase:
    """Catalogs on a database and its replica, on which it is already."""
    address = replica.address.replace("dbname=postgres", f"dbname={conninfo_to_dict(url)['dbname']}")
    until = time.monotonic() + TIMEOUT_S
    while True:
        try:
            psycopg.connect(address).close()
        except psycopg.OperationalError:
            assert time.monotonic() < until, "it is not replicated"
            time.sleep(0.02)
        else:
            return PostgresCase(url, address, pace)


class Databases:
    """Databases on a server, each with the present schema, which is made once."""

    def __init__(self, server: str) -> None:
        self._server = server

    def __enter__(self) -> Self:
        self._run(f"CREATE DATABASE {TEMPLATE}")
        with open_writer(Address(self._url(TEMPLATE))) as session:
            upgrade(session, load_schema())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._run(f"DROP DATABASE {TEMPLATE} WITH (FORCE)")

    @contextmanager
    def another(self, *, empty: bool = False) -> Iterator[str]:
        """Create a database, and drop it at the end; yields its connection string."""
        name = f"pkgrepo_{uuid4().hex[:12]}"
        # Copied as files, which costs half as much as a copy by the log.
        self._run(f"CREATE DATABASE {name} TEMPLATE {'template1' if empty else TEMPLATE} STRATEGY FILE_COPY")
        yield self._url(name)
        self._run(f"DROP DATABASE {name} WITH (FORCE)")

    def _run(self, sql: str) -> None:
        with psycopg.connect(self._server, autocommit=True) as connection:
            connection.execute(sql)

    def _url(self, name: str) -> str:
        return self._server.replace("dbname=postgres", f"dbname={name}")
