"""Configurations of container repositories."""

from __future__ import annotations

from typing import Any

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.container.configuration import CONFIGURATIONS

RULES = {
    "allow_tag_overwrite": False,
    "must_be_project_member": False,
    "auto_create_projects": False,
    "must_use_auth_token_for_push": False,
    "requires_approval": False,
    "require_content_trust": False,
}

PROXY = {"type": "Proxy", "config": {"upstream_url": "https://up.example/"}}


def test_defaults_are_filled_in_exactly() -> None:
    assert CONFIGURATIONS.validate({"type": "Hosted"}) == ({"type": "Hosted", "push_rules": RULES}, {})


def test_what_stands_beside_the_rules_is_kept() -> None:
    fixed, settings = CONFIGURATIONS.validate(
        {"push_rules": {"allow_tag_overwrite": True}, "policy": {"allow_sparse": True}, "x_note": 1, "page": "hello"}
    )
    assert fixed == {"type": "Hosted", "push_rules": RULES | {"allow_tag_overwrite": True}}
    assert settings["x_note"] == 1
    assert settings["page"] == "hello"
    assert settings["policy"]["allow_sparse"] is True


def test_proxies_may_be_the_default_and_have_a_prefix() -> None:
    fixed, settings = CONFIGURATIONS.validate(PROXY | {"library_prefix": "always", "default": True})
    assert fixed["type"] == "Proxy"
    assert settings == {"library_prefix": "always", "default": True}


@pytest.mark.parametrize(
    ("config", "pointer"),
    [
        (PROXY | {"library_prefix": "sometimes"}, "/library_prefix"),
        ({"type": "Virtual", "members": ["a/b"], "resolution": "merge"}, "/resolution"),
        ({"push_rules": {"allow_tag_overwrite": "yes"}}, "/push_rules/allow_tag_overwrite"),
        ({"push_rules": {"unknown": True}}, "/push_rules/unknown"),
        ({"unknown": True}, "/unknown"),
    ],
)
def test_what_is_wrong_or_not_available_is_refused_where_it_stands(config: dict[str, Any], pointer: str) -> None:
    with pytest.raises(Invalid) as caught:
        CONFIGURATIONS.validate(config)
    assert caught.value.pointer == pointer
