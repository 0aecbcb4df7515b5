from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ldaptor import ldapfilter
from ldaptor.protocols import pureber, pureldap

from pkgrepo.errors import Invalid
from pkgrepo.ldap.filters import Filter, equal, every

AD = (
    "(&(objectCategory=person)(|(sAMAccountName={username})(userPrincipalName={username}))"
    "(!(userAccountControl:1.2.840.113556.1.4.803:=2)))"
)
NESTED = "(member:1.2.840.113556.1.4.1941:={dn})"


def decoded(wire: bytes):
    """The tree of a filter, as a server reads it."""
    context = pureldap.LDAPBERDecoderContext_Filter(fallback=pureber.BERDecoderContext())
    return pureber.berDecodeObject(context, wire)[0]


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("(uid={username})", "(uid=ann)"),
        ("(|(uid={username})(mail={username}@corp.example))", "(|(uid=ann)(mail=ann@corp.example))"),
        ("(mail={username}@*)", "(mail=ann@*)"),
        ("(cn=*{username}*)", "(cn=*ann*)"),
        ("(&(cn=a\\2ab)(!(uid>={username})))", "(&(cn=a\\2ab)(!(uid>=ann)))"),
        (AD, AD.replace("{username}", "ann")),
        ("(cn:dn:caseExactMatch:={username})", "(cn:dn:caseExactMatch:=ann)"),
    ],
)
def test_values_are_put_into_their_places(text, filled):
    wire = Filter(text, "username").fill(username=b"ann").toWire()
    assert wire == ldapfilter.parseFilter(filled).toWire().replace(b"\x84\x01\x00", b"") or b"\x84\x01\x00" not in wire


def test_the_rule_of_active_directory_is_sent_as_it_is_written():
    wire = Filter(NESTED, "dn").fill(dn=b"cn=Ann (Example),dc=corp").toWire()
    assert wire == b"\xa9\x3b\x81\x171.2.840.113556.1.4.1941\x82\x06member\x83\x18cn=Ann (Example),dc=corp"


@given(st.text(min_size=1))
def test_no_value_changes_a_filter(value):
    raw = value.encode("utf-8", "replace")
    found = decoded(Filter("(&(objectClass=person)(uid={username}))", "username").fill(username=raw).toWire())
    assert [type(each).__name__ for each in found] == ["LDAPFilter_equalityMatch"] * 2
    assert found[1].assertionValue.value == raw


@pytest.mark.parametrize(
    ("text", "anybody"),
    [
        ("(uid={username})", "(uid=*)"),
        ("(&(objectClass=person)(uid={username}))", "(&(objectClass=person)(uid=*))"),
        ("(|(mail={username}@*)(cn:caseExactMatch:={username}))", "(|(mail=*)(cn=*))"),
    ],
)
def test_a_filter_for_anybody_asks_for_the_attribute_alone(text, anybody):
    assert Filter(text, "username").anybody().toWire() == ldapfilter.parseFilter(anybody).toWire()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "uid={username}",
        "(uid={username}",
        "(uid={username}))",
        "(uid=ann)",
        "(uid={user})",
        "(&(uid={username})(cn={dn}))",
        "(uid={username})(cn=x)",
        "({username}=ann)",
        "(cn=\\c3\\a9{username})",
        "(" * 3000,
        "(cn={})",
    ],
)
def test_what_is_no_filter_of_people_is_refused(text):
    with pytest.raises(Invalid):
        Filter(text, "username")


def test_filters_are_joined():
    wire = every(equal("entryUUID", b"1"), equal("uid", b")(")).toWire()
    assert [each.assertionValue.value for each in decoded(wire)] == [b"1", b")("]
