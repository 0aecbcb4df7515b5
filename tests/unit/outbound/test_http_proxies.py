"""Which proxy the environment means."""

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.outbound.http_proxies import ProxyChoice


def choice(no=""):
    return ProxyChoice({"http": "http://one.example:3128", "https": "https://me:p%40ss@two.example", "no": no})


def test_scheme_decides():
    http, https = (choice().find(scheme, "mirror.example") for scheme in ("http", "https"))
    assert (http.target.text, http.authorization) == ("http://one.example:3128/", None)
    assert (https.target.text, https.authorization) == ("https://two.example/", b"Basic bWU6cEBzcw==")
    assert "p@ss" not in repr(https)
    assert "bWU6" not in repr(https)


def test_nothing_in_the_environment():
    assert ProxyChoice({}).find("http", "mirror.example") is None
    assert ProxyChoice({"http": ""}).find("http", "mirror.example") is None


def test_proxy_without_a_scheme():
    assert ProxyChoice({"http": "one.example:3128"}).find("http", "a").target.text == "http://one.example:3128/"


@pytest.mark.parametrize(
    ("no", "host", "direct"),
    [
        ("", "localhost", True),
        ("", "127.0.0.1", True),
        ("", "::1", True),
        ("*", "mirror.example", True),
        ("mirror.example", "mirror.example", True),
        ("mirror.example", "a.mirror.example", True),
        (".mirror.example", "a.mirror.example", True),
        ("mirror.example", "othermirror.example", False),
        ("a.example, mirror.example", "mirror.example", True),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("10.0.0.0/8", "mirror.example", False),
        ("10.1.2.3", "10.1.2.3", True),
        ("fd00::/8", "fd00::1", True),
    ],
)
def test_hosts_without_a_proxy(no, host, direct):
    assert (choice(no).find("http", host) is None) is direct


@pytest.mark.parametrize("url", ["socks5://one.example", "http://", "http://one.example:x", "http://me:secret@a b"])
def test_proxy_that_cannot_be_used(url):
    with pytest.raises(Invalid, match="proxy for http") as caught:
        ProxyChoice({"http": url})
    assert "secret" not in str(caught.value)
