"""Whose word counts."""

import pytest
from attrs import define, field
from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.logger import capturedLogs, formatEvent

from pkgrepo.http.reading.proxies import Addresses, TrustedProxies


@define
class Asked:
    fields: dict[bytes, bytes]
    client: object = IPv4Address("TCP", "10.0.0.1", 5000)
    host: object = IPv4Address("TCP", "127.0.0.1", 8081)
    secure: bool = False
    authority: bytes | None = field(default=b"inside:8081")

    def isSecure(self) -> bool:
        return self.secure


TRUSTED = TrustedProxies(["10.0.0.0/8", "fd00::/8"])


@pytest.mark.parametrize(
    ("fields", "client", "base"),
    [
        ({}, "10.0.0.1", "http://inside:8081"),
        ({b"x-forwarded-for": b"1.2.3.4"}, "1.2.3.4", "http://inside:8081"),
        ({b"x-forwarded-for": b"6.6.6.6, 1.2.3.4"}, "1.2.3.4", "http://inside:8081"),
        ({b"x-forwarded-for": b"6.6.6.6, 1.2.3.4, 10.1.1.1"}, "1.2.3.4", "http://inside:8081"),
        ({b"x-forwarded-for": b"10.2.2.2, 10.1.1.1"}, "10.2.2.2", "http://inside:8081"),
        ({b"x-forwarded-for": b"1.2.3.4:99"}, "1.2.3.4", "http://inside:8081"),
        ({b"x-forwarded-for": b"[2001:db8::1]:99"}, "2001:db8::1", "http://inside:8081"),
        ({b"x-forwarded-for": b"2001:db8::1"}, "2001:db8::1", "http://inside:8081"),
        ({b"x-forwarded-for": b"<script>"}, "10.0.0.1", "http://inside:8081"),
        ({b"x-forwarded-proto": b"https"}, "10.0.0.1", "https://inside:8081"),
        ({b"x-forwarded-proto": b"https", b"x-forwarded-host": b"out.example"}, "10.0.0.1", "https://out.example"),
        ({b"x-forwarded-host": b"a b"}, "10.0.0.1", "http://inside:8081"),
        ({b"x-forwarded-proto": b"javascript"}, "10.0.0.1", "http://inside:8081"),
        ({b"x-forwarded-host": b"a", b"x-forwarded-port": b"8443"}, "10.0.0.1", "http://a:8443"),
        ({b"x-forwarded-host": b"a:1", b"x-forwarded-port": b"8443"}, "10.0.0.1", "http://a:1"),
        (
            {b"x-forwarded-host": b"a", b"x-forwarded-proto": b"https", b"x-forwarded-port": b"443"},
            "10.0.0.1",
            "https://a",
        ),
        ({b"x-forwarded-host": b"a", b"x-forwarded-prefix": b"/pkg/"}, "10.0.0.1", "http://a/pkg"),
        ({b"x-forwarded-host": b"a", b"x-forwarded-prefix": b"//evil.example"}, "10.0.0.1", "http://a"),
        (
            {b"x-forwarded-for": b"9.9.9.9, 1.2.3.4, 10.1.1.1", b"x-forwarded-host": b"evil, out, in"},
            "1.2.3.4",
            "http://out",
        ),
    ],
)
def test_rightmost_untrusted_address_is_the_client(fields: dict[bytes, bytes], client: str, base: str) -> None:
    assert TRUSTED.resolve(Asked(fields)) == Addresses(client, base)


@pytest.mark.parametrize(
    ("fields", "client", "base"),
    [
        ({b"forwarded": b"for=1.2.3.4;proto=https;host=out"}, "1.2.3.4", "https://out"),
        ({b"forwarded": b'For="[2001:db8::1]:4711" ; Proto=https'}, "2001:db8::1", "https://inside:8081"),
        (
            {b"forwarded": b"for=6.6.6.6;host=evil, for=1.2.3.4;host=out, for=10.1.1.1;host=in"},
            "1.2.3.4",
            "http://out",
        ),
        ({b"forwarded": b"for=unknown;host=out"}, "10.0.0.1", "http://out"),
        ({b"forwarded": b"for=_hidden, for=10.1.1.1"}, "10.1.1.1", "http://inside:8081"),
        ({b"forwarded": b"nonsense"}, "10.0.0.1", "http://inside:8081"),
        # what a client wrote does not hide the entry of the proxy
        ({b"forwarded": b"nonsense, for=1.2.3.4"}, "1.2.3.4", "http://inside:8081"),
        ({b"forwarded": b'for="10.0.0.9, for=1.2.3.4;proto=https'}, "1.2.3.4", "https://inside:8081"),
        ({b"forwarded": b"for=10.0.0.9;;, for=10.1.1.1"}, "10.1.1.1", "http://inside:8081"),
        ({b"x-forwarded-prefix": b"/evil", b"x-forwarded-port": b"1"}, "10.0.0.1", "http://inside:8081"),
    ],
)
def test_entries_of_forwarded_count_where_the_proxies_set_it(
    fields: dict[bytes, bytes], client: str, base: str
) -> None:
    proxies = TrustedProxies(["10.0.0.0/8", "fd00::/8"], "Forwarded")
    assert proxies.resolve(Asked(fields)) == Addresses(client, base)


def test_a_header_that_the_proxies_do_not_set_is_ignored_and_told_of_once() -> None:
    both = {b"forwarded": b"for=10.0.0.7;host=evil;proto=https", b"x-forwarded-for": b"5.5.5.5"}
    same = {b"forwarded": b"for=5.5.5.5", b"x-forwarded-for": b"5.5.5.5"}
    alone = {b"x-forwarded-for": b"10.0.0.7", b"x-forwarded-host": b"evil"}
    usual, other = TrustedProxies(["10.0.0.0/8"]), TrustedProxies(["10.0.0.0/8"], "Forwarded")
    with capturedLogs() as events:
        assert usual.resolve(Asked(same)) == Addresses("5.5.5.5", "http://inside:8081")
        assert events == []
        assert usual.resolve(Asked(both)) == Addresses("5.5.5.5", "http://inside:8081")
        assert usual.resolve(Asked(both)) == Addresses("5.5.5.5", "http://inside:8081")
        assert len(events) == 1
        assert other.resolve(Asked(both)) == Addresses("10.0.0.7", "https://evil")
        assert other.resolve(Asked(alone)) == Addresses("10.0.0.1", "http://inside:8081")
    assert [formatEvent(each).partition(" that ")[0] for each in events] == [
        "the proxy 10.0.0.1 passed on a header Forwarded",
        "the proxy 10.0.0.1 passed on a header X-Forwarded-For",
    ]


def test_strangers_are_not_believed() -> None:
    fields = {b"x-forwarded-for": b"1.1.1.1", b"x-forwarded-host": b"evil", b"forwarded": b"for=1.1.1.1;host=evil"}
    stranger = Asked(fields, client=IPv4Address("TCP", "11.0.0.1", 5000))
    assert TRUSTED.resolve(stranger) == Addresses("11.0.0.1", "http://inside:8081")
    assert TrustedProxies().resolve(Asked(fields)) == Addresses("10.0.0.1", "http://inside:8081")


def test_proxy_reached_over_ipv6_is_recognised() -> None:
    fields = {b"x-forwarded-for": b"1.2.3.4"}
    assert TRUSTED.resolve(Asked(fields, client=IPv6Address("TCP", "fd00::5", 1))).client_address == "1.2.3.4"
    mapped = IPv6Address("TCP", "::ffff:10.0.0.1", 1)
    assert TRUSTED.resolve(Asked(fields, client=mapped)).client_address == "1.2.3.4"


def test_peer_on_a_unix_socket_is_believed_only_when_told_so() -> None:
    asked = Asked({b"x-forwarded-for": b"1.2.3.4"}, client=UNIXAddress(b"/run/x"), host=UNIXAddress(b"/run/x"))
    assert TRUSTED.resolve(asked).client_address == ""
    assert TrustedProxies(["unix"]).resolve(asked).client_address == "1.2.3.4"


def test_client_without_host_gets_addresses_of_the_socket() -> None:
    assert TRUSTED.resolve(Asked({}, authority=None)).base_url == "http://127.0.0.1:8081"
    asked = Asked({}, authority=None, host=IPv6Address("TCP", "::1", 80), secure=True)
    assert TRUSTED.resolve(asked).base_url == "https://[::1]:80"


def test_who_asked_for_the_host_of_an_https_address_did_so_by_https() -> None:
    public = TrustedProxies(["10.0.0.0/8"], public_url="https://Pkgs.example/base")
    stranger = IPv4Address("TCP", "11.0.0.1", 5000)
    for client in (stranger, IPv4Address("TCP", "10.0.0.1", 5000)):
        assert public.resolve(Asked({}, client, authority=b"pkgs.EXAMPLE")).base_url == "https://pkgs.EXAMPLE"
        assert public.resolve(Asked({}, client)).base_url == "http://inside:8081"
    forwarded = {b"x-forwarded-host": b"pkgs.example"}
    assert public.resolve(Asked(forwarded)).base_url == "https://pkgs.example"
    assert public.resolve(Asked(forwarded, stranger)).base_url == "http://inside:8081"
    plain = TrustedProxies(public_url="http://pkgs.example")
    assert plain.resolve(Asked({}, authority=b"pkgs.example")).base_url == "http://pkgs.example"
