"""Uploads by requests and curl."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_twisted
import requests

from pkgrepo.http.limits import HttpLimits
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Refusal, Response, text_response
from tests.support.socket_server import Server, blocking
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.server

MIB = 1024 * 1024
WAITING = (
    "-H",
    "Expect: 100-continue",
    "--expect100-timeout",
    str(TIMEOUT_S),
)  # by default curl sends the body after one second
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


async def handle(request: Request) -> Response:
    if request.path == b"/refused":
        raise Refusal(401, "a token is needed here")
    if request.path == b"/limited":
        request.body.limit = 10 * MIB
    digest = hashlib.sha256()
    async for chunk in request.body:
        digest.update(chunk)
    return text_response(digest.hexdigest())


@pytest_twisted.async_yield_fixture
async def server() -> AsyncIterator[Server]:
    # On a busy machine the programs may send late; these tests are not about timeouts.
    server = Server(handle, limits=HttpLimits(drain_s=TIMEOUT_S, drain_idle_s=TIMEOUT_S))
    yield server
    await server.stop()


def zeros(mebibytes: int) -> Iterator[bytes]:
    for _ in range(mebibytes * 4):
        yield bytes(MIB // 4)


DIGEST_OF_20_MIB = hashlib.sha256(bytes(20 * MIB)).hexdigest()


async def test_requests_uploads_with_a_length_and_in_chunks(server: Server) -> None:
    def upload() -> list[str]:
        with requests.Session() as session:
            return [
                session.put(server.url, data=bytes(20 * MIB), timeout=TIMEOUT_S).text,
                session.put(server.url, data=zeros(20), timeout=TIMEOUT_S).text,
            ]

    assert await blocking(upload) == [DIGEST_OF_20_MIB] * 2


@pytest.mark.parametrize(("path", "status"), [("/refused", 401), ("/limited", 413)])
@pytest.mark.parametrize("chunked", [False, True])
async def test_requests_reads_the_refusal_of_an_upload_it_is_still_sending(
    server: Server, path: str, status: int, *, chunked: bool
) -> None:
    def upload() -> list[tuple[int, str]]:
        answers = []
        for _ in range(3):
            data = zeros(40) if chunked else bytes(40 * MIB)
            answer = requests.put(server.url + path, data=data, timeout=TIMEOUT_S)
            answers.append((answer.status_code, answer.reason))
        return answers

    refusals = await blocking(upload)
    assert [refusal[0] for refusal in refusals] == [status] * 3
    assert refusals[0][1] in (
        "a token is needed here",
        "the request body is larger than the 10485760 bytes allowed here",
    )


def curl(*arguments: str) -> str:
    return subprocess.run(
        ["curl", "-s", "-m", str(TIMEOUT_S), *arguments], input=bytes(20 * MIB), check=True, capture_output=True
    ).stdout.decode()


@needs_curl
async def test_curl_waits_for_100_continue_and_uploads(server: Server) -> None:
    for fields in (WAITING, ["-H", "Expect:"]):
        assert await blocking(curl, *fields, "-T", "-", server.url) == DIGEST_OF_20_MIB


@needs_curl
async def test_curl_sends_nothing_of_a_refused_upload(server: Server) -> None:
    report = await blocking(curl, *WAITING, "-w", " %{http_code} %{size_upload}", "-T", "-", server.url + "/refused")
    assert report == "a token is needed here 401 0"
