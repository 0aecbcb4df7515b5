from __future__ import annotations

import os
from pathlib import Path

import psycopg
import pytest

from tests.support import postgresql


def test_a_postgresql_that_is_not_there_is_skipped_with_the_reason(monkeypatch, tmp_path):
    monkeypatch.delenv("PKGREPO_REQUIRE_CLIENTS", raising=False)
    monkeypatch.setattr(postgresql, "PROGRAMS", tmp_path)
    with pytest.raises(pytest.skip.Exception, match="there is no PostgreSQL"), postgresql.postgresql_server():
        pass


def test_a_postgresql_listens_on_no_port_is_not_run_by_root_and_leaves_nothing():
    with postgresql.postgresql_server() as server, psycopg.connect(server.address, autocommit=True) as connection:
        folder = Path(connection.info.host)
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
        pid = int((folder / "data" / "postmaster.pid").read_text().split("\n", 1)[0])
        assert os.stat(f"/proc/{pid}").st_uid != 0
    assert not folder.exists()
    assert not Path(f"/proc/{pid}").exists()
