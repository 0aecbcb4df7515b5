"""Checks the data folder of a server from outside."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import psycopg
import requests

from pkgrepo.repositories.layout.marker import MARKER
from tests.support import server_buckets, server_databases
from tests.support.forked_programs import run_pkgrepo
from tests.support.server_process import ROOT, ServerProcess, clean_environment
from tests.support.timeouts import TIMEOUT_S, polled


class DataFolder:
    """The data folder of a server: its catalog and its default storage, which is in a bucket with ``--s3``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "storages" / "main"
        self.blobs = self.store / "blobs"
        self.uploads = self.store / "uploads"
        for objects in server_buckets.OBJECTS:
            prefix = server_buckets.place_of(*server_buckets.ENDPOINT, folder).prefix
            self.blobs, self.uploads = objects / prefix / "blobs", objects / prefix / "uploads"
        self.layout = self.store / "repositories"

    def copies(self) -> dict[str, Path]:
        """Return all copies in the store, by locator."""
        return {p.relative_to(self.blobs).as_posix(): p for p in self.blobs.rglob("*") if p.is_file()}

    def damaged(self) -> list[str]:
        """Return the locators of copies whose bytes have not the digest that they should; a server may be running."""
        found = []
        named = {locator: bytes(sha256).hex() for locator, sha256 in self.rows("SELECT locator, sha256 FROM blob")}
        for name, path in self.copies().items():
            with suppress(FileNotFoundError):  # the server has replaced it meanwhile
                if sha256_of(path) != (name[3:67] if "." in name else named.get(name, sha256_of(path))):
                    found.append(name)
        return found

    def unfinished(self) -> list[Path]:
        """Return what unfinished uploads have in the store."""
        return list(self.uploads.iterdir()) if self.uploads.exists() else []

    def is_tidy(self) -> bool:
        """
        Whether the store has the copies that the catalog names and nothing else.

        What a crash leaves in a bucket has a grace time of a day, because other nodes may use the bucket.
        """
        if server_buckets.OBJECTS:
            return self.named() <= set(self.copies())
        return set(self.copies()) == self.named() and not self.unfinished()

    def named(self) -> set[str]:
        """Return the locators in rows of the catalog."""
        return {row[0] for row in self.rows("SELECT locator FROM blob")}

    def digests(self) -> set[str]:
        """Return the SHA-256 of all blobs that rows of the catalog name."""
        return {bytes(row[0]).hex() for row in self.rows("SELECT sha256 FROM blob")}

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a query on the catalog; a server may be running."""
        for server in server_databases.SERVER:
            with psycopg.connect(server_databases.database_of(server, self.folder)) as session:
                return list(session.execute(sql))
        connection = apsw.Connection(str(self.folder / "pkgrepo.db"))
        try:
            return list(connection.execute(sql))
        finally:
            connection.close()

    def change(self, sql: str) -> None:
        """Run a statement that changes rows of the catalog."""
        for server in server_databases.SERVER:
            with psycopg.connect(server_databases.database_of(server, self.folder)) as session:
                session.execute(sql)
            return
        connection = apsw.Connection(str(self.folder / "pkgrepo.db"))
        try:
            connection.execute(sql)
        finally:
            connection.close()

    def shown(self) -> set[str]:
        """Return all paths of the readable layout, including temporary files, without the marker."""
        found = {p.relative_to(self.layout).as_posix() for p in self.layout.rglob("*") if p.is_file()}
        return found - {MARKER}

    def is_in_step(self) -> bool:
        """Whether the readable layout is up to date; there is none in a bucket."""
        if server_buckets.OBJECTS:
            return True
        # Events of the server, such as an upstream that is down, are not about the layout.
        last = self.rows("SELECT COALESCE(MAX(seq), 0) FROM event WHERE package_key <> '' OR kind NOT LIKE '%.%'")[0][0]
        handled = self.rows("SELECT value FROM setting WHERE key = 'readable_layout_cursor'")
        return bool(handled) and int(handled[0][0]) >= last

    def delete_catalog(self) -> None:
        """Delete the database."""
        for server in server_databases.SERVER:
            server_databases.drop_database(server, self.folder)
        for path in self.folder.glob("pkgrepo.db*"):
            path.unlink()


def wait_for(true: Callable[[], bool], server: ServerProcess) -> None:
    """Send requests to the server until a condition holds; the test's time limit ends the wait."""

    def holds() -> bool:
        if true():
            return True
        assert requests.get(server.url + "/", timeout=TIMEOUT_S).status_code == 200
        return False

    polled(holds)


def stop_in_step(server: ServerProcess, data: DataFolder) -> int:
    """Stop a server when its readable layout is up to date. Returns its exit status."""
    wait_for(data.is_in_step, server)
    return server.stop()


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tree(*folders: Path) -> dict[str, str | None]:
    """Return all folders (None) and files (digest) below some folders."""
    return {
        str(path): sha256_of(path) if path.is_file() else None
        for folder in folders
        for path in sorted(folder.rglob("*"))
    }


def environment_of(data: DataFolder, **variables: str) -> dict[str, str]:
    """The environment of an administrator's commands on the data folder."""
    found = {"PYTHONPATH": str(ROOT), "PKGREPO_DATA__DIR": str(data.folder), **variables}
    for server in server_databases.SERVER:
        found["PKGREPO_DATABASE__URL"] = server_databases.url_of(server, data.folder)
    return clean_environment(**found)


def pkgrepo(
    data: DataFolder, *arguments: str, environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run an administrator's command on the data folder; its output is not a terminal."""
    return run_pkgrepo(*arguments, environ=environment_of(data, **(environ or {})))
