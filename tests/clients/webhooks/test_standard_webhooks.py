"""A receiver in JavaScript that verifies webhooks with the published library."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from tests.support.client_programs import CLIENTS, ROOT, absent, client_environment, program
from tests.support.configurations import hosted
from tests.support.http_client import HttpClient
from tests.support.python_index import PASSWORD, USER
from tests.support.python_packages import make_wheel
from tests.support.server_process import running

pytestmark = pytest.mark.clients

CONFIG = 'config = { type = "Hosted", conda = { from_wheels = false } }'


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    library = CLIENTS / "standard-webhooks"
    if not (library / ".installed").exists():
        absent("standardwebhooks is not installed (bin/test installs it)")
    script = ROOT / "tests" / "data" / "webhooks" / "receiver.cjs"
    with subprocess.Popen(
        [program("node"), script, library],
        env=client_environment(tmp_path / "home"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


def read(output: IO[str] | None) -> Any:
    assert output is not None
    return json.loads(output.readline())


def test_the_library_accepts_our_signatures_also_while_the_secret_is_rotated(
    tmp_path: Path, receiver: subprocess.Popen[str]
) -> None:
    port = read(receiver.stdout)
    allowed = '[webhooks]\nallow_private = ["127.0.0.1"]\n'
    with running(tmp_path, allowed + hosted("python", py=CONFIG)) as server:
        api = HttpClient(f"{server.url}/api", (USER, PASSWORD))
        body = {"name": "js", "url": f"http://127.0.0.1:{port}/", "events": ["package.*"]}
        made = api.post_json("/system/webhooks", body).json
        assert receiver.stdin is not None
        print(made["secret"], file=receiver.stdin, flush=True)
        # The receiver may read the secret after the first message: an attempt that it refuses says so.
        while api.post_json(f"/system/webhooks/{made['id']}/test", {}).json["state"] != "delivered":
            read(receiver.stdout)
        assert read(receiver.stdout)["type"] == "pkgrepo.ping.v1"
        api.post_json(f"/system/webhooks/{made['id']}/rotate-secret", {})
        for version in ("1.0", "1.1"):
            name, data = make_wheel("demo", version)
            path = f"/repositories/main/py/demo/{version}/{name}"
            assert HttpClient(server.url, (USER, PASSWORD)).put(path, data).status == 201
        sent = [read(receiver.stdout) for _ in range(2)]
    assert [each["subject"] for each in sent] == ["main/py/demo@1.0", "main/py/demo@1.1"]
    assert all(each["ok"] for each in sent)
