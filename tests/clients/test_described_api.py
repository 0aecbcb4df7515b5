"""Schemathesis, which knows nothing but the OpenAPI document, finds that the management API keeps to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.fuzz.api import serving, traceback_of
from tests.lab.fuzz.described import PROGRAM, ask
from tests.support.client_programs import client
from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.clients

ONE = ("--phases", "fuzzing", "--max-examples", "1")  # that fits the document, and one that does not, of each operation


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with serving(tmp_path_factory.mktemp("described")) as found:
        yield found


@pytest.mark.parametrize("caller", ["reader", "secondadmin"])  # bin/faults --fuzz asks as all of them
def test_the_api_keeps_to_its_document(server: ServerProcess, caller: str, tmp_path: Path) -> None:
    assert client("schemathesis") == PROGRAM
    assert [*ask(server.url, caller, tmp_path, 1, ONE)] == []
    assert [*traceback_of(server)] == []
