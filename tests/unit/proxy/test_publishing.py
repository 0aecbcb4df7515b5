"""Where packages go that clients publish."""

from __future__ import annotations

import pytest
from attrs import evolve

from pkgrepo.auth.permissions.rules import make_placeholder
from pkgrepo.errors import ReadOnly
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.proxy.publishing import check_publishes, publish_target

HOSTED = evolve(make_placeholder(1, "main", "hosted"), uid="h")


class OneRepository:
    """A registry in which only the hosted repository is."""

    def find_uid(self, uid: str) -> Repository | None:
        return HOSTED if uid == "h" else None


def virtual(publish_to: str | None) -> Repository:
    config = {"type": "Virtual", "members": ["h"], "publish_to": publish_to, "resolution": "first"}
    return evolve(HOSTED, id=2, uid=f"v{publish_to}", name="all", type=RepositoryType.VIRTUAL, config=config)


def test_packages_go_to_the_hosted_repository() -> None:
    for repository in (HOSTED, virtual("h")):
        assert publish_target(OneRepository(), repository) is HOSTED  # type: ignore[arg-type]


def test_a_proxy_and_a_virtual_repository_without_target_take_none() -> None:
    proxy = evolve(HOSTED, type=RepositoryType.PROXY)
    for repository, words in ((proxy, "main/hosted is a proxy"), (virtual(None), "has no publish_to")):
        with pytest.raises(ReadOnly, match=words):
            check_publishes(repository)
        with pytest.raises(ReadOnly, match=words):
            publish_target(OneRepository(), repository)  # type: ignore[arg-type]


def test_a_target_that_is_gone_is_refused() -> None:
    with pytest.raises(ReadOnly, match="does not exist"):
        publish_target(OneRepository(), virtual("gone"))  # type: ignore[arg-type]
