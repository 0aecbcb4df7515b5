"""The extras of the distribution that a configuration and its catalog need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

from pkgrepo.commands import maintenance
from pkgrepo.composition import databases
from pkgrepo.composition.tracing import setup
from pkgrepo.startup import extras
from pkgrepo.startup.extras import missing_extras
from pkgrepo.storage.catalog.engine.connections import CatalogUnusable
from tests.support.inprocess_server import reactor, server_config
from tests.support.memory_server import Stack

URL = "postgresql://user@database.example/name"


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Have these libraries not be installed."""

    def without(*names: str) -> None:
        monkeypatch.setattr(extras, "find_spec", lambda name: None if name in names else object())

    return without


def test_postgresql_needs_its_library(tmp_path: Path, without: Any) -> None:
    config = server_config(tmp_path, database__url=URL)
    without("psycopg", "botocore")
    assert list(missing_extras(config)) == ["postgresql"]


async def test_a_bucket_needs_its_library(tmp_path: Path, without: Any) -> None:
    stack = Stack(tmp_path)
    await stack.start()
    config = stack.assembly.core.config
    await stack.stop()
    without("psycopg", "botocore")
    assert list(missing_extras(config)) == []
    connection = apsw.Connection(str(config.database_path))
    connection.execute("UPDATE storage SET kind = 'S3'")
    connection.close()
    assert list(missing_extras(config)) == ["s3"]
    without("psycopg")
    assert list(missing_extras(config)) == []


def test_a_new_server_needs_none(tmp_path: Path, without: Any) -> None:
    without("psycopg", "botocore")
    assert list(missing_extras(server_config(tmp_path))) == []


@pytest.mark.parametrize("missing", [True, False])
def test_traces_need_their_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: bool) -> None:
    def find(name: str) -> object:
        if missing and name.startswith("opentelemetry."):
            raise ModuleNotFoundError(name)
        return object()

    monkeypatch.setattr(extras, "find_spec", find)
    config = server_config(tmp_path, traces__endpoint="http://127.0.0.1:4318")
    assert list(missing_extras(config)) == ["traces"] * missing


def test_missing_libraries_of_traces_are_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(setup, "import_module", fail)
    [problem] = maintenance._start_problems(server_config(tmp_path, traces__endpoint="http://127.0.0.1:4318"))
    assert problem == 'traces.endpoint: traces need libraries that are not installed: pip install "WHEEL[traces]"'


def test_a_missing_library_is_named_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(databases, "import_module", fail)
    config = server_config(tmp_path, database__url=URL)
    with pytest.raises(CatalogUnusable, match=r'pip install "WHEEL\[postgresql\]"'):
        databases.make_catalog(config, reactor)
    [problem] = maintenance._start_problems(config)
    assert problem.startswith("database.url: the database is PostgreSQL, and psycopg is not installed")
