"""The grammar of host names and path prefixes, and which of them a request means."""

from __future__ import annotations

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.repositories.addresses import AddressTable, check_alias, check_host

TABLE = AddressTable.checked(
    {"NPM.corp.example": "main/npm", "nexus.corp.example:8082": "main/images"},
    {
        "/repository/npm-all/": "main/npm",
        "/repository/npm-all/deeper": "main/deeper",
        "/v2/docker-all/": "main/images",
        "/api/packages/acme/npm/": "main/npm",
    },
)


@pytest.mark.parametrize(
    ("host", "path"),
    [
        ("npm.corp.example", "main/npm"),
        ("npm.corp.example:8081", "main/npm"),
        ("npm.corp.example.", "main/npm"),
        ("npm.corp.example.:443", "main/npm"),
        ("nexus.corp.example:8082", "main/images"),
        ("nexus.corp.example.:8082", "main/images"),
        ("nexus.corp.example", None),
        ("nexus.corp.example:8083", None),
        ("corp.example", None),
        ("x.npm.corp.example", None),
        ("npm.corp.example:", None),
        ("npm.corp.example..", None),
        ("[::1]:8081", None),
        ("[::1]", None),
        ("", None),
    ],
)
def test_a_host_is_found_with_any_port_unless_it_is_set_with_one(host: str, path: str | None) -> None:
    assert TABLE.of_host(host) == path


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (b"/repository/npm-all/left-pad", ("/repository/npm-all", "main/npm")),
        (b"/repository/npm-all/", ("/repository/npm-all", "main/npm")),
        (b"/repository/npm-all", ("/repository/npm-all", "main/npm")),
        (b"/repository/npm-all/deeper/x", ("/repository/npm-all/deeper", "main/deeper")),
        (b"/repository/npm-all/deeperx", ("/repository/npm-all", "main/npm")),
        (b"/repository/npm-allx/left-pad", None),
        (b"/repository/npm%2dall/left-pad", None),
        (b"/repository%2Fnpm-all/left-pad", None),
        (b"//repository/npm-all/left-pad", None),
        (b"/x/../repository/npm-all/left-pad", None),
        (b"/api/packages/acme/npm/left-pad", ("/api/packages/acme/npm", "main/npm")),
        (b"/v2/docker-all/app/manifests/1", None),
        (b"/", None),
        (b"", None),
    ],
)
def test_an_alias_is_a_prefix_of_whole_segments(raw: bytes, found: tuple[str, str] | None) -> None:
    assert TABLE.of_path(raw) == found


def test_an_alias_below_v2_is_of_names_of_images() -> None:
    assert TABLE.of_image("docker-all/app") == ("main/images", "app")
    assert TABLE.of_image("docker-all/") == ("main/images", "")
    assert TABLE.of_image("docker-allx/app") is None
    assert TABLE.names_of("MAIN/npm") == (
        ["npm.corp.example"],
        ["/api/packages/acme/npm/", "/repository/npm-all/"],
    )


@pytest.mark.parametrize(
    "name",
    ["", ".", "a..b", "-" * 64, "a.b:99999", "a.b:", "a b", "a/b", "[::1]", "ex\u00e4mple", "*.a", "a\n", "user@a"],
)
def test_what_is_no_host_is_refused(name: str) -> None:
    with pytest.raises(Invalid):
        check_host(name)


@pytest.mark.parametrize(
    "prefix",
    [
        *("", "/", "x/", "//", "/a//b/", "/../x/", "/a/../b/", "/a/%2e/", "/a b/", "/a\n/"),
        *("/repositories/main/npm/", "/ui/", "/t/", "/api/user/", "/api/packages/", "/api/packages/x/", "/v2/"),
        *("/healthz/", "/_/", "/_/oidc/", "/-/", "/-/npm/v1/", "/.well-known/", "/.well-known/acme/"),
    ],
)
def test_what_is_no_alias_or_hides_the_server_is_refused(prefix: str) -> None:
    with pytest.raises(Invalid):
        check_alias(prefix)


def test_two_spellings_of_one_name_are_refused_with_a_pointer() -> None:
    with pytest.raises(Invalid, match="twice") as caught:
        AddressTable.checked({}, {"/a/b": "main/x", "/a/b/": "main/y"})
    assert caught.value.pointer == "/aliases/~1a~1b~1"
    with pytest.raises(Invalid, match="storage/name"):
        AddressTable.checked({"a.example": "npm"}, {})
