from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ldaptor.protocols import pureldap

from pkgrepo.ldap.messages import (
    DEEPEST,
    MOST_ELEMENTS,
    MOST_MESSAGE,
    Entry,
    Result,
    Unusable,
    bind,
    next_size,
    read,
    request,
    search,
    start_tls,
)


def message(operation, number=7):
    return pureldap.LDAPMessage(operation, id=number).toWire()


ENTRY = message(
    pureldap.LDAPSearchResultEntry(b"uid=ann", [(b"UID", [b"ann"]), (b"mail", [b"\xff", b"a@b"]), (b"x", [])])
)


def test_responses_are_read():
    assert next_size(ENTRY) == len(ENTRY)
    number, entry = read(ENTRY)
    assert (number, entry.dn) == (7, b"uid=ann")
    assert (entry.text("uid"), entry.text("MAIL"), entry.values("x"), entry.values("cn")) == ("ann", "a@b", (), ())
    done = message(pureldap.LDAPSearchResultDone(resultCode=4, errorMessage=b"too many"))
    assert read(done) == (7, Result(4, "too many"))
    reference = message(pureldap.LDAPSearchResultReference([pureldap.LDAPString(b"ldap://other")]))
    assert read(reference) == (7, None)


def test_a_bind_response_with_a_referral_is_a_result():
    # resultCode 10, and [3] with one URI (RFC 4511 section 4.1.10)
    body = b"\x0a\x01\x0a\x04\x00\x04\x00\xa3\x0e\x04\x0cldap://other"
    wire = b"\x02\x01\x01\x61" + bytes((len(body),)) + body
    wire = b"\x30" + bytes((len(wire),)) + wire
    assert next_size(wire) == len(wire)
    assert read(wire) == (1, Result(10, ""))


@pytest.mark.parametrize("cut", range(len(ENTRY)))
def test_a_part_of_a_message_is_no_message_yet(cut):
    assert next_size(ENTRY[:cut]) is None


def nested(depth: int) -> bytes:
    data = b""
    for _ in range(depth):
        data = b"\x30" + (bytes((len(data),)) if len(data) < 128 else b"\x82" + len(data).to_bytes(2, "big")) + data
    return data


LONG = {
    "http": b"HTTP/1.1 400 Bad Request\r\n",
    "tls": b"\x15\x03\x03\x00\x02\x02\x28",
    "indefinite": b"\x30\x80\x02\x01\x01",
    "huge": b"\x30\x84\x7f\xff\xff\xff",
    "larger": b"\x30\x83" + (MOST_MESSAGE + 1).to_bytes(3, "big"),
    "long length": b"\x30\x89" + bytes(9),
    "deep": nested(DEEPEST + 3),
    "deeper": nested(5000),
    "long number": b"\x30\x08\x02\x06" + bytes(6),
    "no number": b"\x30\x02\x02\x00",
    "outside": b"\x30\x04\x04\x05ab",
    "request": message(bind("cn=x", "y")),
    "many": b"\x30\x82" + (2 * MOST_ELEMENTS + 2).to_bytes(2, "big") + b"\x04\x00" * (MOST_ELEMENTS + 1),
    "unknown": b"\x30\x05\x02\x01\x01\x66\x00",
}


@pytest.mark.parametrize("kind", LONG)
def test_what_is_no_response_is_refused_before_it_is_decoded(kind):
    with pytest.raises(Unusable):
        next_size(LONG[kind])


@given(st.binary(max_size=200))
def test_bytes_of_any_kind_are_refused_or_read(data):
    wire = b"\x30" + (bytes((len(data),)) if len(data) < 128 else b"\x81" + bytes((len(data),))) + data
    with suppress(Unusable):
        size = next_size(wire)
        assert size is None or read(wire[:size])


@given(st.data())
def test_a_damaged_entry_is_refused_or_read(data):
    wire = bytearray(ENTRY)
    for _ in range(data.draw(st.integers(1, 3))):
        wire[data.draw(st.integers(2, len(wire) - 1))] = data.draw(st.integers(0, 255))
    with suppress(Unusable):
        size = next_size(bytes(wire))
        if size is not None:
            _, found = read(bytes(wire[:size]))
            assert found is None or isinstance(found, Entry | Result)


def test_requests_have_their_number():
    for operation in (bind("", ""), search("dc=x", pureldap.LDAPFilter_present("uid"), ["uid"], 2), start_tls()):
        wire = request(300, operation)
        assert wire[2:6] == b"\x02\x02\x01\x2c"
