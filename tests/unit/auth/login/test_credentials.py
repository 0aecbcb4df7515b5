import base64
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zope.interface.verify import verifyObject

from pkgrepo.auth.login.credentials import (
    IPasswordCredentials,
    ISignedCredentials,
    ITokenCredentials,
    PasswordCredentials,
    SignedCredentials,
    TokenCredentials,
    named_secret,
    parse_authorization,
)
from pkgrepo.auth.tokens.text import make_token
from pkgrepo.errors import AuthenticationFailed
from pkgrepo.model import TokenKind
from tests.support.auth import basic

TOKEN = make_token(TokenKind.PERSONAL)


@pytest.mark.parametrize("scheme", ["Basic", "basic", "BASIC"])
def test_basic_gives_name_and_password(scheme):
    header = scheme.encode() + b" " + base64.b64encode(b"bob:pa:ss")
    assert parse_authorization(header, "192.0.2.1") == PasswordCredentials("bob", "pa:ss", "192.0.2.1")


def test_basic_in_utf8_and_in_latin1_both_are_read():
    utf8 = b"Basic " + base64.b64encode("bob:pässword".encode())
    latin1 = b"Basic " + base64.b64encode("bob:pässword".encode("latin-1"))
    assert parse_authorization(utf8) == parse_authorization(latin1) == PasswordCredentials("bob", "pässword")


@pytest.mark.parametrize("name", ["", "token", "Token", "__token__", "oauth2accesstoken"])
def test_a_token_as_basic_password_is_a_token_and_customary_names_name_nobody(name):
    assert parse_authorization(basic(name, TOKEN)) == TokenCredentials(TOKEN, "")


def test_a_token_as_basic_password_keeps_another_name_for_the_checker():
    assert parse_authorization(basic("bob", TOKEN)) == TokenCredentials(TOKEN, "bob")


@pytest.mark.parametrize("password", ["", "x", "x-oauth-basic"])
def test_a_token_as_basic_user_name_is_a_token(password):
    assert parse_authorization(basic(TOKEN, password)) == TokenCredentials(TOKEN)


def test_of_a_merged_field_the_token_counts():
    merged = basic("bob", "secret") + b", " + TOKEN.encode()
    assert parse_authorization(merged) == TokenCredentials(TOKEN)
    assert parse_authorization(basic("bob", "secret") + b", nothing") == PasswordCredentials("bob", "secret")


@pytest.mark.parametrize("form", ["Bearer {}", "bearer {}", "Bearer  {} ", "Token {}", "token {}", "{}", " {} "])
def test_a_token_is_read_in_every_form_that_clients_send(form):
    assert parse_authorization(form.format(TOKEN).encode()) == TokenCredentials(TOKEN)


def test_a_bearer_of_three_parts_is_a_signed_one():
    assert parse_authorization(b"Bearer aa.bb.cc") == SignedCredentials("aa.bb.cc")


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b" ",
        b"Basic",
        b"Basic ",
        b"Basic !!!",
        b"Basic " + base64.b64encode(b"nocolon"),
        b"Basic " + base64.b64encode(b":"),
        b"Basic " + base64.b64encode(b"bob:"),
        b"Basic " + base64.b64encode(b":secret"),
        b"Basic " + base64.b64encode(b"bob:" + b"x" * 1025),
        b"Bearer",
        b"Bearer npm_somethingelse",
        b"Bearer a.b",
        b",",
        b"nothing, Basic Ym9iOnNlY3JldA==",
        b"Token nothing",
        b'Digest username="bob"',
        b"Negotiate YII=",
        b"justsomething",
        b"\xff\xfe",
        pytest.param(b"Bearer " + TOKEN[:-1].encode(), id="a token cut short"),
    ],
)
def test_anything_else_fails_as_wrong_credentials_do(header):
    with pytest.raises(AuthenticationFailed):
        parse_authorization(header)


@given(st.binary(max_size=200))
def test_no_header_does_anything_but_parse_or_fail(header):
    with suppress(AuthenticationFailed):
        parse_authorization(header)


def test_credentials_are_those_of_cred():
    assert verifyObject(IPasswordCredentials, named_secret("bob", "secret"))
    assert verifyObject(ITokenCredentials, named_secret("", TOKEN))
    assert verifyObject(ISignedCredentials, SignedCredentials("a.b.c"))


def test_a_name_that_nobody_can_have_is_refused_before_it_is_remembered():
    with pytest.raises(AuthenticationFailed):
        named_secret("a" * 20_000, "a password")
    assert named_secret("a" * 200, "a password").username == "a" * 200
