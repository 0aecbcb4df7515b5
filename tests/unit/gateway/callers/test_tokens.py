"""Access tokens in the address of a request, and in the header of quetz uploads."""

import pytest

from pkgrepo.auth.tokens.text import hide_tokens, make_token
from pkgrepo.gateway.callers.tokens import take_token
from pkgrepo.http.limits import HttpLimits
from pkgrepo.http.reading.head import parse_fields, parse_request_line
from pkgrepo.model import TokenKind
from tests.support.memory_server import running_stacks

TOKEN = make_token(TokenKind.CI)
HYPHENS = TOKEN.replace("_", "-")
SPELLINGS = {"plain": TOKEN, "hyphens": HYPHENS, "encoded": TOKEN.replace("p", "%70")}


def taken(target, fields=b""):
    """The target and the Authorization header after ``take_token``."""
    line = parse_request_line(b"GET " + target.encode() + b" HTTP/1.1")
    line, block = take_token(line, parse_fields(b"Host: a\r\n" + fields, HttpLimits()))
    header = block.values.get(b"authorization")
    return line.target.decode(), header and header.decode()


@pytest.mark.parametrize("spelling", ["plain", "hyphens", "encoded"])
@pytest.mark.parametrize(
    ("address", "left"),
    [
        ("/t/{}/repositories/main/py/conda/noarch/repodata.json", "/repositories/main/py/conda/noarch/repodata.json"),
        ("/t/{}/repositories/main/py/simple/?a=b", "/repositories/main/py/simple/?a=b"),
        ("/repositories/main/py/conda/t/{}/noarch/x.conda", "/repositories/main/py/conda/noarch/x.conda"),
        ("/repositories/main/channel/t/{}/noarch/x.conda", "/repositories/main/channel/noarch/x.conda"),
        ("/repositories/main/channel/t/{}?a=b", "/repositories/main/channel?a=b"),
        ("/repositories/main/channel/t/{}", "/repositories/main/channel"),
        ("/t/{}/noarch/x.conda?a=b", "/t /noarch/x.conda?a=b"),
        ("/repository/channel/t/{}/noarch/x.conda", "/t /repository/channel/noarch/x.conda"),
        ("/t/{}/api/user/token", "/t /api/user/token"),
        ("/t/{}", "/t /"),
        ("/t/{}?a=b", "/t /?a=b"),
    ],
)
def test_a_token_moves_from_the_address_to_the_header(address, left, spelling):
    assert taken(address.format(SPELLINGS[spelling])) == (left, f"Token {TOKEN}")


@pytest.mark.parametrize("word", ["", "wrong", "a%20b", "%0d%0ax", "pkgr_c_short,other"])
def test_what_is_no_token_at_the_front_is_refused_like_a_wrong_one(word):
    target, header = taken(f"/t/{word}/repositories/main/py/simple/")
    assert target == "/repositories/main/py/simple/"
    assert header in ("Token ?", "Token wrong")


@pytest.mark.parametrize(
    "target",
    [
        "/repositories/main/py/t/1.0/t-1.0.tar.gz",
        "/repositories/main/java/conda/t/1.0/t-1.0.jar",
        "/repositories/main/py/simple/t/",
        "/api/t/x/y",
        "/t/1.0.0",
        "/t/wrong/noarch/x.conda",
        "/x?a=/t/pkgr_c_x/",
        "/repositories/main/py/simple/t/pkgr_c_x/x",
    ],
)
def test_other_addresses_stay(target):
    assert taken(target, b"Authorization: Basic abc\r\n") == (target, "Basic abc")


def test_the_token_of_the_address_replaces_other_credentials():
    assert taken(f"/t/{TOKEN}/repositories/a/b/", b"Authorization: Basic abc\r\n")[1] == f"Token {TOKEN}"


def test_the_key_of_quetz_uploads_is_a_token():
    key = f"X-API-Key: {TOKEN}\r\n".encode()
    upload = "/repositories/main/py/conda/api/channels/c/upload/x-1-0.conda?force=false"
    assert taken(upload, key) == (upload, f"Token {TOKEN}")
    assert taken(upload, key + b"Authorization: Basic abc\r\n")[1] == "Basic abc"
    assert taken("/repositories/main/py/simple/", key)[1] is None


def test_tokens_are_hidden_in_both_spellings():
    assert hide_tokens(f"/a/{TOKEN}/{HYPHENS}/b") == "/a/***/***/b"


async def test_a_private_repository_is_read_by_token_address_and_names_it_nowhere(tmp_path, capfdbinary):
    async with running_stacks(tmp_path) as make:
        server = await make(log__access=True)
        await server.add_repository("py", visibility="private")
        filename = await server.publish("main/py", "demo", "1.0")
        token = (await server.token(repositories=[{"repository": "main/py", "actions": ["read"]}])).replace("_", "-")
        page = f"/t/{token}/repositories/main/py/simple/demo/"
        first, again = [await server.call("GET", page, who=None) for _ in range(2)]
        assert (first.status, again.status) == (200, 200)
        assert filename.encode() in first.body
        answers, secret, wrong = [first, again], token.split("-")[2][:12], "y" if token[-1] == "x" else "x"
        for path, status in [
            (f"/t/{token}/repositories/main/py/simple/Demo", 301),
            (f"/t/{token}/repositories/main/py/simple/none/", 404),
            (f"/t/{token}/repositories/main/none/simple/", 404),
            (f"/t/{token}/api/user", 404),
            (f"/t/x{secret}/noarch/repodata.json", 404),
            (f"/t/{token[:-1]}{wrong}/repositories/main/py/simple/demo/", 401),
            ("/t/other/repositories/main/py/simple/demo/", 401),
        ]:
            answers.append(await server.call("GET", path, who=None))
            assert (path, answers[-1].status) == (path, status)
        for answer in answers:
            assert secret not in f"{answer.headers} {answer.body!r}"
        assert "Token" not in first.headers.get("vary", "")
    log = capfdbinary.readouterr().out
    assert b"/repositories/main/py/simple/demo/" in log
    assert secret.encode() not in log
