"""Who may read and change what, with every form of credentials that gem and Bundler send."""

from __future__ import annotations

from base64 import b64encode

import pytest

from tests.support.gems import make_gem
from tests.support.http_client import HttpClient
from tests.support.python_index import PASSWORD, USER

pytestmark = pytest.mark.server


def basic_field(text: str) -> str:
    return "Basic " + b64encode(text.encode()).decode()


def forms(token: str) -> dict[str, str]:
    return {
        "gem": token,
        "bearer": f"Bearer {token}",
        "password": basic_field(f"{USER}:{PASSWORD}"),
        "token as password": basic_field(f"{USER}:{token}"),
        "named token": basic_field(f"token:{token}"),
        "token as user": basic_field(f"{token}:"),
        "joined": f"{basic_field('someone:else')}, {token}",
    }


@pytest.fixture
def private(repository):
    where = repository("private")
    assert where.post("/api/v1/gems", make_gem("inside", "1.0")).status == 200
    return where


@pytest.mark.parametrize("form", list(forms("")))
def test_every_form_of_credentials_reads_and_pushes(private, token_texts, form):
    field = forms(token_texts["all"])[form]
    anonymous = private.as_user()
    assert anonymous.get("/gems/inside-1.0.gem", Authorization=field).status == 200
    data = make_gem(f"by-{form.replace(' ', '-')}", "1")
    assert anonymous.post("/api/v1/gems", data, Authorization=field).status == 200


READS = ["/", "/gems/inside-1.0.gem", "/gems/other-1.0.gem", "/quick/Marshal.4.8/inside-1.0.gemspec.rz", "/other"]


@pytest.mark.parametrize("path", READS)
def test_private_reads_need_credentials(private, path):
    reply = private.as_user().get(path)
    assert reply.status == 401
    assert reply.headers["www-authenticate"].startswith("Basic ")
    assert private.as_user(USER, "wrong").get(path).status == 401
    assert private.as_user().head(path).status == 401


def test_a_token_for_some_gems_reads_these_only(private, token_texts):
    reader, anonymous = token_texts["team in private"], private.as_user()
    assert private.post("/api/v1/gems", make_gem("team-inside", "1.0")).status == 200
    for name, status in (("team-inside", 200), ("inside", 403)):
        for path in (
            f"/info/{name}",
            f"/gems/{name}-1.0.gem",
            f"/quick/Marshal.4.8/{name}-1.0.gemspec.rz",
            f"/api/v1/gems/{name}.json",
            f"/api/v1/versions/{name}.json",
            f"/api/v1/gems/{name}/owners.json",
        ):
            assert anonymous.get(path, Authorization=reader).status == status, path


def test_refusals_are_text_for_programs_that_print_them(private):
    agent = "Ruby, RubyGems/3.3.15 x86_64-linux Ruby/3.1.2"
    for name in ("private", "no-such-repository"):
        where = HttpClient(private.url.replace("private", name))
        reply = where.post("/api/v1/gems", b"x", Authorization="wrong", User_Agent=agent)
        assert (reply.status, reply.headers["content-type"]) == (401, "text/plain; charset=utf-8")
        assert reply.text.startswith("incorrect username or password")


def test_the_head_of_a_repository_is_empty(rb, private):
    for where in (rb.as_user(), private):
        for path in ("", "/"):
            reply = where.head(path)
            assert (reply.status, reply.body) == (200, b"")
    assert rb.get("/").status == 200


def test_pushes_need_a_valid_token(rb, token_texts):
    data = make_gem("denied", "1")
    anonymous = rb.as_user()
    nobody = anonymous.post("/api/v1/gems", data)
    assert (nobody.status, nobody.text) == (401, "Access Denied. authentication required")
    wrong = anonymous.post("/api/v1/gems", data, Authorization="nonsense")
    assert wrong.status == 401
    assert wrong.text.startswith("Access Denied. ")
    assert wrong.headers["www-authenticate"] == 'Basic realm="pkgrepo"'
    for name in ("reader", "elsewhere"):
        reply = anonymous.post("/api/v1/gems", data, Authorization=token_texts[name])
        assert reply.status == 403
        assert not reply.text.startswith(("The API key doesn't have access", "You have enabled"))
    assert rb.get("/gems/denied-1.gem").status == 404


def test_a_token_for_some_gems_pushes_these_only(rb, token_texts):
    anonymous = rb.as_user()
    field = token_texts["team"]
    assert anonymous.post("/api/v1/gems", make_gem("team-a", "1"), Authorization=field).status == 200
    assert anonymous.post("/api/v1/gems", make_gem("other-a", "1"), Authorization=field).status == 403
    assert rb.get("/gems/other-a-1.gem").status == 404


def test_refused_pushes_read_no_body(rb):
    with rb.as_user().connect() as connection:
        connection.sendall(
            rb.as_user().head_lines("POST", "/api/v1/gems", Content_Length="1000", Expect="100-continue")
        )
        assert connection.recv(12) == b"HTTP/1.1 401"


def test_unknown_addresses_are_404_in_text(rb):
    reply = rb.as_user().get("/nothing")
    assert (reply.status, reply.headers["content-type"]) == (404, "text/plain; charset=utf-8")
    for path in (
        "/specs.4.8",
        "/Marshal.4.8.Z",
        "/yaml",
        "/gems/..%2f..%2fx.gem",
        "/.yanked/gems/a-1.gem",
        "/api/v1/x",
    ):
        assert rb.as_user().get(path).status == 404, path
