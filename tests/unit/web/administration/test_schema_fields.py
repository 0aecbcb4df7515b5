"""Forms from JSON Schemas: what a form shows is read back from what a browser sends of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pkgrepo.composition.core import make_formats
from pkgrepo.config import Config
from pkgrepo.errors import Invalid
from pkgrepo.web.administration.schema_fields import Field, config_from, fields_of
from pkgrepo.web.visits import Form

ROUTES = {
    "routes": [
        {"url": "https://a.example/", "name": "a", "priority": 3, "auth": {"username": "u", "password": "***"}},
        {"url": "https://b.example/", "name": "b", "priority": 0, "hosts": {"cdn.example": "http://127.0.0.1:1"}},
    ]
}
FORMATS = make_formats(Config())
PEM = "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"
CASES = {
    "hosted": {"type": "Hosted"},
    "page": {"type": "Hosted", "page": "# A\n\nB", "auth": {"enabled": True}},
    "proxy": {"type": "Proxy", "proxy": ROUTES, "cache_ttl": "5m", "cache": {"negative_ttl": 30, "unused_days": 9}},
    "policy": {
        "type": "Proxy",
        "proxy": ROUTES,
        "policy": {"minimum_release_age": {"days": 7, "exempt": ["a*"]}, "pass_searches": False, "keep_removed": True},
    },
    "virtual": {"type": "Virtual", "members": ["main/a", "main/b"], "publish_to": "main/a"},
}


def sent(fields: list[Field]) -> Iterator[tuple[str, str]]:
    """The names and values that a browser sends of these fields."""
    for field in fields:
        if field.kind in {"group", "list"}:
            if field.settable and field.value:
                yield f"set {field.name}", "1"
            yield from sent(list(field.children))
        elif field.kind == "flag":
            if field.value:
                yield field.name, "1"
        else:
            yield field.name, "" if field.value is None else str(field.value)


def returned(schema: Any, config: dict[str, Any]) -> dict[str, Any]:
    form = Form({name: [value] for name, value in sent(fields_of(schema, config["type"], config))})
    return config_from(schema, config["type"], form)


@pytest.mark.parametrize(
    ("format_", "case"),
    [(name, case) for name in FORMATS for case in CASES if name != "conda" or CASES[case]["type"] == "Hosted"],
)
def test_a_configuration_survives_its_form(format_: str, case: str) -> None:
    it = FORMATS[format_]
    fixed, settings = it.configurations.validate(CASES[case])
    whole = {**fixed, **settings}
    fixed_again, settings_again = it.configurations.validate(returned(it.configurations.schema(), whole))
    assert {**fixed_again, **settings_again} == whole


@pytest.mark.parametrize(
    ("format_", "config"),
    [
        ("python", {"type": "Hosted", "conda": {}}),
        ("maven", {"type": "Hosted", "push_rules": {"push_policy": "RELEASES", "yanking_allowed": False}}),
    ],
    ids=["group of defaults", "choice"],
)
def test_what_one_format_has_survives_its_form(format_: str, config: dict[str, Any]) -> None:
    it = FORMATS[format_]
    fixed, settings = it.configurations.validate(config)
    assert it.configurations.validate(returned(it.configurations.schema(), {**fixed, **settings})) == (fixed, settings)


def test_what_cannot_be_read_is_refused_with_its_place() -> None:
    schema = FORMATS["npm"].configurations.schema()
    for name, text in (("/cache/max_bytes", "many"), ("/proxy/routes/0/hosts", "no equals sign")):
        form = Form({name: [text], "/proxy/routes/0/url": ["https://a.example/"]})
        with pytest.raises(Invalid) as caught:
            config_from(schema, "Proxy", form)
        assert caught.value.pointer == name
    with pytest.raises(Invalid):
        config_from(schema, "Other", Form({}))


def test_keys_are_told_apart_by_their_armour() -> None:
    config = {"type": "Hosted", "trust": {"keys": [PEM, PEM]}}
    assert returned(FORMATS["docker"].configurations.schema(), config)["trust"] == config["trust"]
