"""Sending is repeated after broken connections and while the server is overloaded, and refusals are told at once."""

import json

import pytest
from twisted.internet import reactor

from pkgrepo.client.http import Failed
from pkgrepo.client.transfers.deploy import ATTEMPTS, DeployClient, Target
from tests.support.raw_server import RawServer

UID = "0f8fad5b-d9cb-469f-a165-70867728950e"
BEGUN = (201, {"deployment_id": UID, "state": "PENDING"})
BUNDLE = [b"PK", b"x" * 100_000, b"end"]


def client_of(target):
    """A client without pauses."""
    return DeployClient(reactor, target, pause_s=0, poll_s=0)


class Scripted:
    """A server that does one thing after the other: it sends an answer, or closes the connection (None)."""

    def __init__(self, *steps):
        self.steps = list(steps)
        self.server = RawServer(self.answer)

    def answer(self, connection, head):
        if head.startswith("POST"):
            if self.steps and self.steps[0] == "at once":
                self.steps.pop(0)
                self.send(connection)
            return  # its body comes, whose end looks like that of a head
        self.send(connection)

    def send(self, connection):
        step = self.steps.pop(0)
        if step is None:
            connection.transport.abortConnection()
            return
        status, value = step
        body = json.dumps(value).encode()
        head = f"HTTP/1.1 {status} Because\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        connection.write(head.encode() + body)
        connection.end()

    @property
    def requests(self):
        return [head.split()[0] for head in self.server.heads if head.startswith(("POST", "GET"))]


async def deploy(scripted, told=None):
    target = Target(f"{scripted.server.url}/repositories/main/mvn", "Bearer secret", "a name")
    try:
        return await client_of(target).deploy(lambda: iter(BUNDLE), (lambda _: None) if told is None else told.append)
    finally:
        await scripted.server.stop()


async def test_the_bundle_is_sent_and_its_state_asked_until_it_ends():
    scripted, told = Scripted(BEGUN, *[(200, {"state": state}) for state in ("PENDING", "VALIDATING", "VALIDATED")]), []
    scripted.steps += [(200, {"state": "PUBLISHING"}), (200, {"state": "PUBLISHED"})]
    assert await deploy(scripted, told) == {"state": "PUBLISHED"}
    assert told == ["PENDING", "VALIDATING", "VALIDATED", "PUBLISHING", "PUBLISHED"]
    first, second = scripted.server.heads[0], scripted.server.heads[2]
    assert first.startswith("POST /repositories/main/mvn/deploy?publishing_type=AUTOMATIC&name=a+name HTTP/1.1")
    assert "Authorization: Bearer secret" in first
    assert "Content-Type: application/zip" in first
    assert second.startswith(f"GET /repositories/main/mvn/deploy/{UID} ")


async def test_a_broken_connection_is_tried_again_with_the_whole_bundle():
    scripted = Scripted(None, None, BEGUN, None, (200, {"state": "PUBLISHED"}))
    assert (await deploy(scripted))["state"] == "PUBLISHED"
    assert scripted.requests == ["POST", "POST", "POST", "GET", "GET"]


async def test_an_overloaded_server_is_asked_again_and_others_are_not():
    scripted = Scripted((503, {"detail": "later"}), BEGUN, (200, {"state": "FAILED"}))
    assert (await deploy(scripted))["state"] == "FAILED"
    scripted = Scripted((500, {"detail": "internal error"}))
    with pytest.raises(Failed, match="500 internal error") as raised:
        await deploy(scripted)
    assert raised.value.status == 500


async def test_attempts_are_limited():
    scripted = Scripted(*[None] * 10)
    with pytest.raises(Failed, match="cannot be reached"):
        await deploy(scripted)
    assert scripted.requests == ["POST"] * ATTEMPTS


async def test_an_answer_before_the_end_of_the_bundle_is_taken():
    scripted = Scripted("at once", (401, {"detail": "no"}))
    with pytest.raises(Failed, match="401 no") as raised:
        await deploy(scripted)
    assert raised.value.status == 401


@pytest.mark.parametrize("answer", [{}, [], "x", {"deployment_id": 7}])
async def test_an_answer_without_id_is_told(answer):
    with pytest.raises(Failed, match="no id of a deployment"):
        await deploy(Scripted((200, answer)))


async def test_a_redirect_is_not_followed_with_the_credentials():
    with pytest.raises(Failed, match="307"):
        await deploy(Scripted((307, {})))


async def test_a_file_that_cannot_be_read_ends_the_deploy():
    def pieces():
        yield b"PK"
        raise FileNotFoundError(2, "No such file", "x.jar")

    scripted = Scripted()
    target = Target(f"{scripted.server.url}/r", "Bearer secret")
    with pytest.raises(Failed, match=r"x\.jar"):
        await client_of(target).deploy(pieces, lambda _: None)
    await scripted.server.stop()
