"""The table of incidents: complete, in order of time, and without anything that a search for hosts would find."""

from __future__ import annotations

import re
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

import pkgrepo
from pkgrepo.composition.core import make_formats
from pkgrepo.config import read_config
from pkgrepo.errors import NotFound
from pkgrepo.proxy.incidents.corpus import get_incident, incidents
from pkgrepo.proxy.incidents.shapes import Incident

EVERY = incidents()
FORMATS = make_formats(read_config(environ={}))


def test_there_are_incidents_of_each_year_that_had_some_and_of_each_format_that_can_be_drilled() -> None:
    names = [each.name for each in EVERY]
    assert len(set(names)) == len(names) >= 20
    assert {each.published_at.year for each in EVERY} == {2018, 2019, 2021, 2022, 2024, 2025, 2026}
    drilled = {name for name, each in FORMATS.items() if each.proxied is not None and each.proxied.drilled is not None}
    assert {each.format for each in EVERY} == drilled


@pytest.mark.parametrize("incident", EVERY, ids=lambda each: each.name)
def test_an_incident_says_what_did_harm_and_when_and_who_tells_of_it(incident: Incident) -> None:
    assert re.fullmatch(r"[a-z0-9-]+", incident.name)
    assert incident.sources
    assert any(each.harmful for each in incident.packages)
    names = {each.name for each in incident.packages if each.harmful}
    for package in incident.packages:
        assert package.through in names | {""}
        FORMATS[incident.format].package_key(package.name)
        assert all(one.at <= other.at for one, other in pairwise(package.versions)), package.name
        assert len({each.version for each in package.versions}) == len(package.versions)
        before = [each.at for each in package.versions if not each.harmful]
        first = min((each.at for each in package.harmful), default=package.versions[0].at)
        # with nothing old before it, rules would have nothing to compare with; a new package is in the table whole
        assert not before or before[0] <= first - timedelta(days=100) or package.through
        for each in package.versions:
            FORMATS[incident.format].version_key(each.version)
            assert 1 <= each.kib <= 1024
            assert each.harmful == (each.removed is not None)
            assert each.removed is None or each.at < each.removed
        if package.known is not None:
            assert package.known.at >= min(each.at for each in package.harmful)
    for text in (incident.title, incident.changed, *incident.sources):
        assert not re.search(r"https?:|\.(?:com|org|io|dev)\b", text), text


def test_the_book_says_how_many_there_are() -> None:
    assert f"[{len(EVERY)} of them](incidents.md)" in (Path(pkgrepo.__file__).parent / "docs/drill.md").read_text()


def test_an_incident_is_found_by_its_name() -> None:
    assert get_incident("axios").format == "npm"
    with pytest.raises(NotFound):
        get_incident("heartbleed")
