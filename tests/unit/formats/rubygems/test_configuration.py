"""Configurations of Ruby repositories, and what is shown for setting up clients."""

from __future__ import annotations

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.rubygems.configuration import CONFIGURATIONS
from pkgrepo.formats.rubygems.setup import snippets


def test_push_rules_are_fixed_and_the_rest_are_settings() -> None:
    config, settings = CONFIGURATIONS.validate(
        {"type": "Hosted", "policy": {"unique_numbers": False}, "compact_index": {"created_at": False}}
    )
    assert config == {
        "type": "Hosted",
        "push_rules": {
            "must_be_project_member": False,
            "auto_create_projects": False,
            "must_use_auth_token_for_push": False,
            "requires_approval": False,
        },
    }
    assert settings["policy"] == {
        "rules": [],
        "burst": None,
        "unique_numbers": False,
        "unique_spellings": True,
        "reuse_deleted_names": False,
    }
    assert settings["compact_index"] == {"created_at": False, "drop_yanked": False}


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        ({"policy": {"allow_overwrite": True}}, "/policy/allow_overwrite"),
        ({"compact_index": {"created_at": 1}}, "/compact_index/created_at"),
        ({"push_rules": {"x": True}}, "/push_rules/x"),
    ],
)
def test_unknown_settings_are_refused(value: dict[str, object], pointer: str) -> None:
    with pytest.raises(Invalid) as caught:
        CONFIGURATIONS.validate({"type": "Hosted", **value})
    assert caught.value.pointer == pointer


def test_snippets_name_the_repository() -> None:
    url = "https://gems.example/repositories/main/rb"
    every = snippets(url, publishes=True)
    assert {each["client"] for each in every} == {"bundler", "gem", "curl"}
    assert all(
        url in each["text"] or "token:<TOKEN>@gems.example/repositories/main/rb" in each["text"] for each in every
    )
    assert not any("push" in each["text"] for each in snippets(url, publishes=False))
