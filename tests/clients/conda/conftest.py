"""py-rattler and rattler-build, in a folder of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.client_programs import client, client_environment, run_client

SCRIPT = Path(__file__).with_name("rattler_client.py")


@pytest.fixture
def rattler(tmp_path: Path) -> Callable[..., str]:
    """Run py-rattler, or rattler-build's uploads, in a folder of its own. Returns what it printed."""
    environ = client_environment(tmp_path / "home")

    def run(status: int = 0, **arguments: Any) -> str:
        command = [client("rattler", "python"), SCRIPT, json.dumps(arguments)]
        return run_client(command, environ=environ, folder=tmp_path, status=status).stdout

    return run
