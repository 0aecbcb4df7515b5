"""Publishers: the claims that a source stands for, and those that may be anybody."""

from __future__ import annotations

from typing import Any

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.oidc.issuers import Issuer, Issuers, guess_kind
from pkgrepo.oidc.publishers import check_given, for_package, package_of, source_claims, warnings_about
from pkgrepo.repositories.configuration import PipelinePublisher

GITHUB = "https://token.actions.githubusercontent.com"
NOTHING: Any = None  # documents and a reactor, which are not used


def issuer(name: str, url: str, kind: str = "") -> Issuer:
    return Issuer(name, url, ["a"], NOTHING, NOTHING, kind)


@pytest.mark.parametrize(
    ("name", "url", "kind"),
    [
        ("x", GITHUB, "github"),
        ("x", "https://ghe.corp.example/_services/token", "github"),
        ("x", "https://forge.corp.example/api/actions", "github"),
        ("x", "https://gitlab.com", "gitlab"),
        ("x", "https://gitlab.corp.example/git", "gitlab"),
        ("gitlab", "https://code.corp.example", "gitlab"),
        ("x", "https://oidc.circleci.com/org/1", "circleci"),
        ("x", "https://code.corp.example", ""),
        ("x", "https://evil.example/gitlab.com", ""),
    ],
    ids=range(9),
)
def test_the_kind_of_an_issuer(name: str, url: str, kind: str) -> None:
    assert guess_kind(name, url) == kind


def test_the_claims_that_a_source_stands_for() -> None:
    public, forge = issuer("github", GITHUB), issuer("forge", "https://forge.corp.example/api/actions")
    assert source_claims(public, "acme/*") == {"repository": "acme/*"}
    assert source_claims(public, "acme/*", "r.yml")["workflow_ref"] == "acme/*/.github/workflows/r.yml@**"
    assert source_claims(forge, "acme/x", "r[1].yml")["workflow_ref"] == "acme/x/*/workflows/r[[]1].yml@**"
    lab = issuer("lab", "https://gitlab.corp.example/git/")
    assert source_claims(lab, "group/**", ".gitlab-ci.yml") == {
        "project_path": "group/**",
        "ci_config_ref_uri": "gitlab.corp.example/git/group/**//.gitlab-ci.yml@**",
    }
    assert source_claims(issuer("x", "https://x.example"), "acme/x") == {"repository": "acme/x"}
    for each, source, file in (
        (public, "acme/x", "../r.yml"),
        (public, "acme/x", "r.yml@refs/heads/main"),
        (public, "acme/**", "r.yml"),
        (issuer("x", "https://x.example"), "acme/x", "r.yml"),
    ):
        with pytest.raises(Invalid):
            source_claims(each, source, file)


def test_publishers_that_may_be_anybody() -> None:
    issuers = Issuers([issuer("github", GITHUB), issuer("forge", "https://forge.corp.example")], lambda: 0.0)
    anybody: dict[str, Any] = {"issuer": "github", "claims": {"repository": "acme*/x"}}
    with pytest.raises(Invalid, match="everybody has pipelines at"):
        check_given(issuers, anybody)
    assert "lets nobody publish" in warnings_about(issuers, anybody)[0]
    check_given(issuers, {**anybody, "issuer": "forge"})
    assert "all projects at" in warnings_about(issuers, {**anybody, "issuer": "forge"})[0]
    assert warnings_about(issuers, {**anybody, "claims": {"repository": "acme/*"}}) == []
    with pytest.raises(Invalid, match="there is no issuer 'lab'"):
        check_given(issuers, {**anybody, "issuer": "lab"})
    with pytest.raises(Invalid, match=r"there is no issuer 'lab' .*, and no other"):
        check_given(Issuers([], lambda: 0.0), {**anybody, "issuer": "lab"})


@pytest.mark.parametrize(
    ("packages", "name"), [(["acme"], "acme"), (["a[*]"], "a*"), (["acme-*"], None), (["a", "b"], None), ([], None)]
)
def test_the_only_package_of_a_publisher(packages: list[str], name: str | None) -> None:
    assert package_of({"packages": packages}) == name


def test_a_publisher_of_a_package_names_no_other_one() -> None:
    given = PipelinePublisher(issuer="forge", claims={"repository": "acme/x"})
    assert for_package(given, "a*").packages == ["a[*]"]
    with pytest.raises(Invalid):
        for_package(PipelinePublisher(issuer="forge", claims={}, packages=["*"]), "acme")
