"""
The data folder of each release, with a package of each format, from which later versions must be able to go on.

    python -m tests.support.release_data

makes that of this version, tests/data/releases/VERSION.tar.xz; a release is made with it, and it is never made again.
"""

from __future__ import annotations

import io
import json
import lzma
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw
import psycopg
from attrs import frozen

from pkgrepo import __version__
from pkgrepo.storage.catalog.engine.dialect import FUNCTIONS, schema_to_postgresql
from pkgrepo.storage.catalog.engine.schema import load_schema
from pkgrepo.storage.catalog.postgresql.schema import STATE_TABLE
from tests.support.first_publishes import Publisher

FOLDER = Path(__file__).parents[1] / "data" / "releases"
RELEASES = sorted(each.name.removesuffix(".tar.xz") for each in FOLDER.iterdir())
ADMIN = ("admin", "correct horse battery")


@frozen
class ReleaseData:
    """The unpacked data folder of a release, the SQL of its schema, and what was published in it."""

    data: Path
    schema: str
    published: list[dict[str, str]]  # format, file, index, sha256

    @property
    def database(self) -> Path:
        return self.data / "pkgrepo.db"

    def check(self, url: str) -> None:
        """Read everything from a server."""
        client = Publisher(url, ADMIN)
        assert len(self.published) == 6
        for each in self.published:
            assert sha256(client.ask("GET", each["file"]).content).hexdigest() == each["sha256"], each
            assert "first" in client.ask("GET", each["index"]).text, each

    def rows(self) -> Iterator[tuple[str, list[str], list[tuple[Any, ...]]]]:
        """The columns and rows of each table that has some."""
        connection = apsw.Connection(str(self.database), flags=apsw.SQLITE_OPEN_READONLY)
        tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE%'"
        for (table,) in connection.execute(tables).fetchall():
            if table.startswith("sqlite") or "_text_" in table:
                continue
            columns = [name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))]
            if rows := connection.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall():
                yield table, columns, rows
        connection.close()

    def copy_to_postgresql(self, url: str) -> None:
        """Fill an empty database as this release would have: its schema, its version and its rows."""
        connection = apsw.Connection(str(self.database), flags=apsw.SQLITE_OPEN_READONLY)
        version = connection.execute("PRAGMA user_version").get
        connection.close()
        with psycopg.connect(url) as target:
            target.execute(FUNCTIONS + STATE_TABLE + schema_to_postgresql(self.schema))
            target.execute("UPDATE catalog_state SET version = %s", (version,))
            target.execute("SET session_replication_role = replica")  # rows in any order
            for table, columns, rows in self.rows():
                marks = ", ".join(["%s"] * len(columns))
                with target.cursor() as cursor:
                    sql = f"INSERT INTO {table} ({', '.join(columns)}) OVERRIDING SYSTEM VALUE VALUES ({marks})"
                    cursor.executemany(sql, rows)
            for table, columns, _ in self.rows():
                if "id" in columns:
                    sequence = target.execute("SELECT pg_get_serial_sequence(%s, 'id')", (table,)).fetchone()
                    if sequence and sequence[0]:
                        target.execute(f"SELECT setval(%s, (SELECT max(id) FROM {table}))", sequence)


def unpack(release: str, folder: Path) -> ReleaseData:
    """Unpack the data of a release into a folder."""
    with tarfile.open(FOLDER / f"{release}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    published = json.loads((folder / "published.json").read_text())
    return ReleaseData(folder / "data", (folder / "schema.sql").read_text(), published)


def make(target: Path) -> None:
    """Write the data of this version."""
    from tests.support.data_folder import DataFolder, stop_in_step
    from tests.support.server_process import twistd_process

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = twistd_process(folder)
        try:
            client = Publisher(server.wait_ready(), ADMIN)
            published = list(client.publish_all())
            for each in published:
                client.check(each)
        finally:
            stop_in_step(server, DataFolder(folder / "data"))
        connection = apsw.Connection(str(folder / "data" / "pkgrepo.db"))
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE); VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        for each in ("pkgrepo.db-wal", "pkgrepo.db-shm"):
            (folder / "data" / each).unlink(missing_ok=True)
        (folder / "schema.sql").write_text(load_schema().sql)
        records = [
            {"format": each.format, "file": each.file, "index": each.index, "sha256": sha256(each.data).hexdigest()}
            for each in published
        ]
        (folder / "published.json").write_text(json.dumps(records, indent=1))
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for part in ("data", "published.json", "schema.sql"):
                archive.add(folder / part, part)
        target.write_bytes(lzma.compress(packed.getvalue(), preset=9))
        shutil.rmtree(folder / "data")


if __name__ == "__main__":
    make(FOLDER / f"{__version__}.tar.xz")
