"""Formats of which the facts alone are there, until more of one is needed; and what the API and the console serve."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock

import pytest
from attrs import fields

from pkgrepo.assembly import API, CONSOLE
from pkgrepo.composition.core import FORMATS
from pkgrepo.config import Config
from pkgrepo.gateway.format import Format, FormatFacts, LateFormat
from pkgrepo.management.app import ManagementApp
from pkgrepo.repositories.format import ByFormat, load_formats
from pkgrepo.web.app import WebApp

EACH = pytest.mark.parametrize(("facts", "make"), FORMATS, ids=[facts.name for facts, _ in FORMATS])
Make = Callable[[Config], Format]


@EACH
def test_a_format_has_its_facts(facts: FormatFacts, make: Make) -> None:
    made = make(Config())
    assert {name: getattr(made, name) for name in facts.fields} == facts.fields
    assert {each.name for each in fields(FormatFacts)} <= {each.name for each in fields(Format)}


@EACH
def test_facts_name_what_a_format_has_at_the_root(facts: FormatFacts, make: Make) -> None:
    made = make(Config())
    assert {each.branch for each in made.root_exchanges} == set(facts.exchanges)
    assert set(made.branches(MagicMock(), MagicMock())) == set(facts.branch_names)


def late(loaded: list[Format]) -> LateFormat:
    facts, make = next(each for each in FORMATS if each[0].name == "raw")
    return LateFormat(facts, lambda: make(Config()), loaded.append)


def test_facts_load_nothing_and_any_other_field_loads_the_format_once() -> None:
    loaded: list[Format] = []
    format_ = late(loaded)
    assert (format_.name, format_.look.starter, format_.aliases) == ("raw", "files", ("generic",))
    assert (format_.is_loaded, loaded) == (False, [])
    assert format_.proxied is not None
    assert format_.tree is not None
    assert (format_.is_loaded, loaded) == (True, [format_])


def test_a_format_that_is_not_loaded_has_no_other_attributes() -> None:
    format_: Any = late([])
    with pytest.raises(AttributeError):
        format_.nothing_of_the_kind  # noqa: B018
    assert not format_.is_loaded


async def test_formats_are_loaded_in_a_thread() -> None:
    formats, calls = [late([]), late([])], list[Callable[[], Any]]()

    async def in_thread(func: Callable[[], Any]) -> Any:
        calls.append(func)
        return func()

    await load_formats(formats, in_thread)
    await load_formats(formats, in_thread)
    assert (len(calls), [each.is_loaded for each in formats]) == (2, [True, True])


def test_what_is_made_by_format_loads_that_one_alone() -> None:
    formats: dict[str, Format] = {"raw": late([]), "other": late([])}
    proxied = ByFormat(formats, lambda each: each.proxied)
    assert "raw" in proxied
    assert proxied["raw"] is proxied["raw"]
    assert not formats["other"].is_loaded
    images = ByFormat(formats, lambda each: each.images)
    assert (images.get("raw"), list(images), len(proxied)) == (None, [], 2)


def test_the_api_and_the_console_have_the_branches_that_lead_to_them() -> None:
    assert set(ManagementApp(MagicMock()).branches()) == set(API)
    assert set(WebApp(MagicMock(), MagicMock(), MagicMock(), {}).branches()) == set(CONSOLE)
