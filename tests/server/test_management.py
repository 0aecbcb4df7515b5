"""The management API over real sockets, as curl and scripts use it."""

from __future__ import annotations

import base64
import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests
from twisted.internet.threads import deferToThread

from tests.support.python_packages import make_wheel
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.server


def curl(*arguments: str) -> tuple[int, bytes]:
    """Run curl, and return status and body."""
    done = subprocess.run(
        [
            "curl",
            "--silent",
            "--show-error",
            "--max-time",
            str(TIMEOUT_S),
            "--write-out",
            "%{stderr}%{http_code}",
            *arguments,
        ],
        capture_output=True,
        check=True,
    )
    return int(done.stderr), done.stdout


@pytest.mark.folder("adds the default storage again as one in a folder")
async def test_a_server_is_set_up_with_three_lines_of_curl(server: Any) -> None:
    credentials = ":".join(server.admin)
    base = server.url

    def post(path: str, body: str) -> tuple[int, bytes]:
        return curl("-u", credentials, "-X", "POST", base + path, "-d", body)

    async def ask(path: str, body: str) -> Any:
        status, answer = await deferToThread(post, path, body)
        assert status in (200, 201), answer
        return json.loads(answer)

    await ask("/api/storage", '{"name":"main","type":"Local"}')
    repository = await ask(
        "/api/repository",
        '{"name":"py","storage":"main","format":"python","visibility":"public","config":{"type":"Hosted"}}',
    )
    token = await ask(
        "/api/user/token",
        '{"name":"ci","scopes":["read"],"repositories":[{"repository":"main/py","actions":["read","write"]}]}',
    )
    filename, data = make_wheel("demo", "1.0")

    def upload() -> int:
        return requests.put(
            f"{repository['url']}/demo/1.0/{filename}",
            data=data,
            auth=("__token__", token["token"]),
            timeout=TIMEOUT_S,
        ).status_code

    assert await deferToThread(upload) == 201
    status, page = await deferToThread(curl, f"{base}/repositories/main/py/simple/demo/")
    assert status == 200
    assert filename.encode() in page


async def test_an_admins_bearer_token_opens_the_api(server: Any) -> None:
    _, answer = await deferToThread(curl, "-u", ":".join(server.admin), "-X", "POST", f"{server.url}/api/auth/token")
    bearer = json.loads(answer)["token"]
    status, users = await deferToThread(curl, "-H", f"Authorization: Bearer {bearer}", f"{server.url}/api/users")
    assert (status, json.loads(users)["items"][0]["username"]) == (200, "admin")


async def test_an_unauthorised_body_is_refused_before_it_is_sent(server: Any, tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"x" * 10_000_000)
    done = await deferToThread(
        subprocess.run,
        [
            "curl",
            "-sv",
            "-H",
            "Expect: 100-continue",
            "--expect100-timeout",
            str(TIMEOUT_S),  # curl sends the body after one second without a 100
            "-T",
            str(tmp_path / "big"),
            f"{server.url}/api/users/x/password",
        ],
        capture_output=True,
        check=False,
    )
    log = done.stderr.decode()
    assert "HTTP/1.1 401" in log
    assert "100 Continue" not in log


async def test_concurrent_requests_create_each_name_once(server: Any) -> None:
    def make(number: int) -> int:
        body = {"name": f"r{number % 5}", "storage": "main", "format": "python"}
        return requests.post(
            f"{server.url}/api/repository", json=body, auth=server.admin, timeout=TIMEOUT_S
        ).status_code

    def everybody() -> list[int]:
        with ThreadPoolExecutor(10) as pool:
            return list(pool.map(make, range(40)))

    statuses = await deferToThread(everybody)
    assert sorted(statuses) == [201] * 5 + [409] * 35


async def test_an_encoded_slash_does_not_separate_segments(server: Any) -> None:
    body = {"name": "py", "storage": "main", "format": "python"}
    await deferToThread(requests.post, f"{server.url}/api/repository", json=body, auth=server.admin)
    for path, expected in (
        ("/api/repository/main%2Fpy", 200),
        ("/api/repository/main%2fpy/config", 200),
        ("/api/repository/main/py", 404),
        ("/api/repository/main%252Fpy", 404),
        ("/api/repository%2Fmain%2Fpy", 404),
        ("/api/package/main%2Fpy/a%2Fb", 404),
        ("/api/repository/%00", 404),
        ("/api/repository/..%2Fpy", 404),
    ):
        status, answer = await deferToThread(curl, "--path-as-is", "-u", ":".join(server.admin), server.url + path)
        assert status == expected, (path, answer)


async def test_passwords_may_contain_non_ascii_characters(server: Any) -> None:
    password = "пароль длинный-ñ"
    body = {"username": "ada", "password": password}
    await deferToThread(requests.post, f"{server.url}/api/users", json=body, auth=server.admin)
    basic = base64.b64encode(f"ada:{password}".encode()).decode()
    status, _ = await deferToThread(curl, "-H", f"Authorization: Basic {basic}", f"{server.url}/api/user/me")
    assert status == 200


async def test_health_checks_and_metrics_are_served_beside_the_api(server: Any) -> None:
    for path, expected in (
        ("/healthz", 200),
        ("/readyz", 200),
        ("/health", 200),
        ("/metrics", 401),
        ("/problems/stale", 200),
    ):
        assert (await deferToThread(curl, server.url + path))[0] == expected
    status, figures = await deferToThread(curl, "-u", ":".join(server.admin), f"{server.url}/metrics")
    assert (status, b"pkgrepo_build_info" in figures) == (200, True)
