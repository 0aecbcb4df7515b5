"""What is shown of an upstream: names by their owners and patterns, files by their age."""

import io
from types import SimpleNamespace

from pkgrepo.formats.conda.format import conda
from pkgrepo.formats.conda.proxied.members import STEP_MS, Hidden, Selection, find_hidden
from pkgrepo.model.repositories import make_placeholder
from pkgrepo.proxy.configuration import Rules
from pkgrepo.proxy.parts.file import PartsFile, write_parts
from pkgrepo.proxy.parts.values import Entry, Normalised, section_of
from pkgrepo.repositories.policy.conditions import Placed
from pkgrepo.repositories.policy.facts import order_of
from pkgrepo.repositories.policy.rules import RuleSet
from pkgrepo.repositories.policy.schema import PolicyRule, RuleMatch
from tests.support.repositories import now

DAY_MS = 86_400_000
NOW_MS = 100 * DAY_MS


class Way:
    """A leaf with these rules about names, and minimum ages as days with patterns of exempt names."""

    def __init__(self, *rules, ages=()):
        self.rules = [(Owner(), each) for each in rules]
        self.repository = make_placeholder(1, "main", "mirror", "conda")
        placed = [
            Placed(PolicyRule(name=str(days), match=RuleMatch(age_days=days, source="cached"), exempt=exempt), "a/b")
            for days, exempt in ages
        ]
        self.policy = RuleSet(placed, order_of(CONDA)) if placed else None


CONDA = conda()
SERVICES = SimpleNamespace(formats={"conda": CONDA}, clock=SimpleNamespace(now_ms=lambda: NOW_MS))


def hidden_in(way, parts):
    return now(find_hidden(SERVICES, way, "up"))(parts)


class Owner:
    path = "main/mirror"


def parts_of(**published):
    made = [
        Entry(section_of(name), f"{name}-{number}", "1", each, False, {}, [])
        for name, times in sorted(published.items())
        for number, each in enumerate(times)
    ]
    out = io.BytesIO()
    write_parts(out, Normalised({}, iter(made), ordered=True))
    return PartsFile(out.getvalue())


def test_young_files_are_hidden_and_looked_at_again_when_the_next_is_old_enough():
    way = Way(ages=[(7, ["free"])])
    old, young, younger = NOW_MS - 7 * DAY_MS, NOW_MS - 6 * DAY_MS, NOW_MS - DAY_MS
    found = hidden_in(way, parts_of(a=[old, younger, young], free=[younger]))
    assert found.files == {"a-1", "a-2"}
    assert found.opens_ms == young + 7 * DAY_MS
    soon = hidden_in(way, parts_of(a=[old + 1]))
    assert soon.opens_ms == NOW_MS + STEP_MS
    assert hidden_in(way, parts_of(a=[old])).opens_ms is None


def test_the_strictest_rule_of_all_repositories_counts():
    way = Way(Rules(), Rules(), ages=[(1, []), (7, [])])
    assert hidden_in(way, parts_of(a=[NOW_MS - 2 * DAY_MS])).files == {"a-0"}


def test_names_of_others_and_reserved_ones_are_not_taken_and_a_file_is_taken_once():
    selection = Selection(Way(Rules(reserved_names=("acme-*",))), {"own"}, Hidden(frozenset({"young"})), set())
    assert [each for each in ("own", "acme-x", "acme_y", "free") if selection.takes_package(each)] == ["free"]
    assert [selection.takes_file(each) for each in ("young", "x", "x")] == [False, True, False]
