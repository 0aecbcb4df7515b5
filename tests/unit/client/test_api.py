"""The client says in one sentence why a server refused or was not reached, and gives up transfers that stall."""

import errno
import json

import pytest
from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred

from pkgrepo.client.api import Client, at, problem_of
from pkgrepo.client.http import Failed, IteratorBody, exit_code
from pkgrepo.client.profiles import Target
from tests.support.raw_server import RawServer

SECRET = "pkgr_p_secret"


def answer(status, body, *fields):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = "".join(f"{field}\r\n" for field in (f"HTTP/1.1 {status} Because", f"Content-Length: {len(data)}", *fields))
    return f"{head}Connection: close\r\n\r\n".encode() + data


async def ask(reply, work, *, end=True, **limits):
    """What ``work`` does with a client of a server that sends these bytes; the heads of the requests."""

    def respond(connection, head):
        connection.write(reply)
        if end:
            connection.end()

    server = RawServer(respond)
    client = Client(reactor, Target(server.url, f"Bearer {SECRET}"), **limits)
    try:
        result = await work(client)
    except Failed as error:
        result = error
    finally:
        await client.close()
        await server.stop()
    return result, server.heads


async def test_a_call_sends_the_token_and_returns_json():
    found, heads = await ask(
        answer(200, {"a": 1}), lambda client: client.get("package", "main/py", "@a/b", q="x y", n=None)
    )
    assert found == {"a": 1}
    assert heads[0].startswith("GET /api/package/main%2Fpy/%40a%2Fb?q=x+y HTTP/1.1\r\n")
    assert f"Authorization: Bearer {SECRET}" in heads[0]


@pytest.mark.parametrize(
    ("reply", "sentence", "code"),
    [
        (answer(404, {"detail": "package 'x' does not exist"}), "package 'x' does not exist", 3),
        (answer(422, {"detail": "bad", "errors": [{"pointer": "/a", "message": "worse"}]}), "bad; /a: worse", 2),
        (answer(403, {"error": "no"}), "no", 4),
        (answer(409, {"errors": [{"code": "DENIED", "message": "tag exists"}]}), "tag exists", 5),
        (answer(400, b"plain words", "Content-Type: text/plain"), "plain words", 2),
        (answer(502, b"<html>", "Content-Type: text/html"), "Because", 1),
        (answer(503, {"detail": "busy"}, "Retry-After: 7"), "busy (try again in 7 seconds)", 1),
        (answer(308, b"", "Location: http://other/"), "the server redirects to http://other/; is this its address?", 1),
    ],
    ids=["missing", "invalid", "npm", "images", "text", "html", "busy", "redirect"],
)
async def test_refusals_keep_the_reason_that_the_server_gives(reply, sentence, code):
    error, _ = await ask(reply, lambda client: client.get("x"))
    assert str(error) == sentence
    assert exit_code(error.status) == code


async def test_a_broken_connection_is_one_sentence_without_the_token():
    error, _ = await ask(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", lambda client: client.get("x"))
    assert "cannot be reached: " in str(error)
    assert SECRET not in str(error)
    assert error.status == 0


async def test_a_download_that_stalls_is_given_up():
    parts = []
    begun = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"
    error, _ = await ask(begun, lambda client: client.fetch("/f", parts.append), end=False, idle_s=2)
    assert str(error) == "the server has sent and taken nothing for 2 seconds"
    assert parts == [b"half"]


async def test_a_full_disk_is_not_blamed_on_the_server():
    def write(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    error, _ = await ask(answer(200, b"x" * 100), lambda client: client.fetch("/f", write))
    assert str(error) == "the file cannot be stored: No space left on device"


async def test_a_file_that_shrinks_while_it_is_sent_is_named_as_the_reason():
    body = IteratorBody(iter([b"few"]), reactor, 100)
    error, _ = await ask(b"", lambda client: client.send("PUT", "/f", body, {}), end=False)
    assert str(error) == "the file has changed while it was sent"


async def test_pages_are_followed_until_enough():
    page = answer(200, {"items": [1, 2], "next": "again"})
    found, heads = await ask(page, lambda client: client.all_items("x", most=5))
    assert found[:4] == [1, 2, 1, 2]
    assert [head.split()[1] for head in heads] == [
        "/api/x?limit=5",
        "/api/x?limit=3&cursor=again",
        "/api/x?limit=1&cursor=again",
    ]


def test_segments_cannot_lead_elsewhere():
    assert at("a/b", "?c", "#d", "..") == "/api/a%2Fb/%3Fc/%23d/.."


@pytest.mark.parametrize("value", [None, [], "text", 1, {}, {"errors": 1}, {"errors": [1]}, {"detail": ""}])
def test_odd_errors_have_the_phrase_of_the_status(value):
    assert problem_of(value, "Because") == "Because"


@pytest.mark.parametrize("reply", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"], ids=["head", "body"])
async def test_a_call_that_is_cancelled_says_so_and_not_that_the_server_is_away(reply):
    asked = Deferred()

    def respond(connection, head):
        connection.write(reply)
        asked.callback(None)

    server = RawServer(respond)
    client = Client(reactor, Target(server.url, f"Bearer {SECRET}"))
    calling = Deferred.fromCoroutine(client.get("x"))
    try:
        await asked
        calling.cancel()
        with pytest.raises(CancelledError):
            await calling
    finally:
        await client.close()
        await server.stop()
