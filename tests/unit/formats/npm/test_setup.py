"""The set-up snippets for clients."""

from __future__ import annotations

from pkgrepo.formats.npm.setup import snippets


def text(url: str, title: str) -> str:
    (found,) = [each["text"] for each in snippets(url, publishes=True) if each["title"].startswith(title)]
    return found


def test_npmrc_limits_the_token_to_the_repository() -> None:
    assert text("https://p.example:8443/x/repositories/main/node", ".npmrc for npm") == (
        "registry=https://p.example:8443/x/repositories/main/node/\n"
        "//p.example:8443/x/repositories/main/node/:_authToken=<TOKEN>\n"
    )


def test_yarn_snippet_publishes_a_scope_to_the_repository() -> None:
    told = text("https://p.example/repositories/main/node", "One scope only, for yarn")
    assert 'npmPublishRegistry: "https://p.example/repositories/main/node"' in told
    assert "unsafeHttpWhitelist" not in told


def test_yarn_snippet_allows_a_host_without_tls() -> None:
    for title in (".yarnrc.yml", "One scope only, for yarn"):
        assert text("http://p.example:8081/x", title).endswith('unsafeHttpWhitelist:\n  - "p.example"\n')


def test_repositories_that_take_nothing_have_no_snippet_for_publishing() -> None:
    titles = [each["title"] for each in snippets("https://p.example/x", publishes=False)]
    assert titles
    assert not [title for title in titles if "Publish" in title]
