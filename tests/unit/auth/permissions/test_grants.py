"""Grants by patterns: which decides, compared with a second telling, and who may give them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import nullcontext
from fnmatch import fnmatchcase
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from pkgrepo.auth.permissions.delegation import NEWCOMER, check_delegation, held
from pkgrepo.auth.permissions.grants import Grants, Places
from pkgrepo.auth.permissions.rules import Standing, decide
from pkgrepo.errors import Forbidden, Invalid
from pkgrepo.model import Action, Identity, Repository, RepositoryScope, SubjectKind, TokenLimits, Visibility
from pkgrepo.storage.catalog.people.grants import (
    MOST_PATTERNS,
    grants_of,
    list_patterns,
    replace_grants,
    set_permission,
    users_with_rights,
)
from tests.support.auth import AuthServices, make_repository

R, W, D = Action.READ, Action.WRITE, Action.DELETE
ME = Identity(user_id=1, username="me", via="password")
PATHS = ["main/npm-a", "main/npm-b", "main/py", "other/npm-a", "other/x"]
PATTERNS = ["*", "main/*", "main/npm-*", "*/npm-*", "*/npm-a", "main/??", "other/[wx]", "*/x", "m*"]
SETS = st.sets(st.sampled_from([R, W, D]), max_size=2).map(frozenset)
PLACES = st.dictionaries(st.one_of(st.sampled_from(PATTERNS), st.integers(1, 5)), SETS, max_size=4)
GROUPS = st.dictionaries(st.sampled_from(["crew", "guests"]), PLACES, max_size=2)
FIELDS = st.fixed_dictionaries(
    {
        "default_actions": st.one_of(st.just(frozenset()), SETS),
        "system_manager": st.sampled_from([False] * 5 + [True]),
    }
)


def repository(number: int, path: str, visibility: Visibility = Visibility.PRIVATE) -> Repository:
    storage, _, name = path.partition("/")
    return evolve(make_repository(visibility=visibility), id=number, storage_name=storage, name=name)


HERE = [repository(number, path) for number, path in enumerate(PATHS, 1)]


def standing(own: Places, groups: Mapping[str, Places], **fields: Any) -> Standing:
    user = evolve(NEWCOMER, id=1, **fields)
    return Standing(user, own=Grants.of_user(own), groups=Grants.of_groups(groups))


def told(places: Places, key: int, path: str) -> frozenset[Action] | None:
    """What the grants of one subject say, once more."""
    if key in places:
        return places[key]
    found = {each: actions for each, actions in places.items() if isinstance(each, str) and fnmatchcase(path, each)}
    if not found:
        return None

    def plain(pattern: str) -> int:
        return len(pattern.replace("[wx]", "").replace("*", "").replace("?", ""))

    best = [actions for each, actions in found.items() if plain(each) == max(map(plain, found))]
    return frozenset() if frozenset() in best else frozenset().union(*best)


@given(PLACES, GROUPS, SETS, st.sampled_from(range(len(PATHS))), st.sampled_from([R, W, D]))
@settings(max_examples=1500, deadline=None)
def test_decisions_are_those_of_a_second_telling(
    own: Places, groups: Mapping[str, Places], default: frozenset[Action], at: int, action: Action
) -> None:
    place = HERE[at]
    user = told(own, place.id, PATHS[at])
    of_groups = [found for each in groups.values() if (found := told(each, place.id, PATHS[at])) is not None]
    if user is not None:
        expected = action in user
    elif of_groups:
        expected = any(action in each for each in of_groups)
    else:
        expected = action in default
    found = decide(
        standing(own, groups, default_actions=default), ME, action, place, "x", owners=lambda: (), anonymous=True
    )
    assert found.allowed is expected, found.reason


@given(PLACES, GROUPS, FIELDS, st.tuples(PLACES, GROUPS, FIELDS), st.tuples(PLACES, GROUPS, FIELDS), st.data())
@settings(max_examples=1500, deadline=None)
def test_nobody_gains_by_a_change_what_its_giver_does_not_hold(
    own: Places, groups: Any, fields: Any, was: Any, becomes: Any, data: st.DataObject
) -> None:
    """Not in what is there, nor in what is made later, is open to all, or gets another name."""
    giver = standing(own, groups, **fields)
    limits = data.draw(st.sampled_from([None, None, TokenLimits(repositories=(RepositoryScope("main/*", {R, W}),))]))
    identity = evolve(ME, limits=limits)
    flags = {**becomes[2], "system_manager": was[2]["system_manager"]}
    before, after = standing(was[0], was[1], **was[2]), standing(becomes[0], becomes[1], **flags)
    try:
        check_delegation(identity, giver, before, after, HERE)
    except Forbidden:
        return
    later = [repository(99, each, visibility) for each in (*PATHS, "q/y", "main/zz") for visibility in Visibility]
    for each in (*HERE, *later):
        gained = held(after, ME, each) - held(before, ME, each)
        assert gained <= held(giver, identity, each), each.path
    patterns = {place: actions for place, actions in becomes[0].items() if isinstance(place, str)}
    changed = {each for each, actions in patterns.items() if was[0].get(each) != actions}
    for key, path in ((1, "main/zz"), (5, "main/npm-c"), (3, "other/npm-a")):  # with another name
        if not any(fnmatchcase(path, each) for each in changed) or key in was[0].keys() ^ becomes[0].keys():
            continue
        renamed = repository(key, path)
        if was[1] == becomes[1] and was[2] == flags and was[0].get(key) == becomes[0].get(key):
            gained = held(after, ME, renamed) - held(before, ME, renamed)
            assert gained <= held(giver, identity, renamed), path


@pytest.mark.parametrize(
    ("own", "groups", "default", "pattern", "actions", "allowed"),
    [
        ({}, {}, (), "main/*", {R}, False),
        ({1: {R}, 2: {R}, 3: {R}}, {}, (), "main/*", {R}, False),  # all that are there, but not those to come
        ({"main/*": {R}}, {}, (), "main/*", {R}, True),
        ({"main/*": {R}}, {}, (), "main/npm-*", {R}, True),
        ({"main/*": {R}}, {}, (), "main/*", {R, W}, False),
        ({"main/npm-*": {R}}, {}, (), "main/*", {R}, False),
        ({"main/*": {R}, "main/npm-*": set()}, {}, (), "main/*", {R}, False),
        ({"main/*": {R}, "other/*": set()}, {}, (), "main/*", {R}, True),
        ({"main/*": {R}, 4: set()}, {}, (), "main/*", {R}, False),  # it may get such a name
        ({}, {"crew": {"*": {R}}}, (), "main/*", {R}, True),
        ({"main/py": {W}}, {"crew": {"*": {R}}}, (), "main/*", {R}, False),
        ({}, {}, (R,), "*", {R}, True),
        ({}, {"crew": {"main/*": set()}}, (R,), "*", {R}, False),
        ({}, {}, (), "main/*", set(), True),  # a refusal gives nothing
    ],
)
@pytest.mark.parametrize("to_group", [False, True])
def test_a_pattern_is_given_by_who_holds_it_wherever_it_may_match(
    own: Any, groups: Any, default: Any, pattern: str, actions: Any, allowed: bool, to_group: bool
) -> None:
    giver = standing(own, groups, default_actions=frozenset(default))
    places = {pattern: frozenset(actions)}
    after = standing({}, {"new": places}) if to_group else standing(places, {})
    told_where = "every repository" if pattern == "*" else f"every repository that {pattern} can match"
    where = re.escape(f" in {told_where}") + "$"  # and not which there are
    with nullcontext() if allowed else pytest.raises(Forbidden, match=where):
        check_delegation(ME, giver, standing({}, {}), after, HERE)


def test_the_end_of_a_refusal_is_a_gift_too() -> None:
    refused, free = standing({"main/*": frozenset()}, {}, default_actions={W}), standing({}, {}, default_actions={W})
    with pytest.raises(Forbidden, match="read, write in every repository that main/"):
        check_delegation(ME, standing({}, {}), refused, free, HERE)
    check_delegation(ME, standing({"*": frozenset({R, W})}, {}), refused, free, HERE)


@pytest.mark.parametrize(
    ("before", "after", "groups"),
    [
        ({"main/*": set(), "*/npm-*": {W}}, {"main/*": {R}, "*/npm-*": {W}}, {}),  # which was equally exact
        ({"main/*": set()}, {}, {"crew": {"*/py": {W}}}),
        ({"main/*": set()}, {}, {"crew": {3: {W}}}),
    ],
)
def test_what_comes_to_decide_instead_of_a_refusal_is_a_gift(before: Any, after: Any, groups: Any) -> None:
    frozen = [{place: frozenset(actions) for place, actions in each.items()} for each in (before, after)]
    was, becomes = (standing(each, groups) for each in frozen)
    with pytest.raises(Forbidden, match="write in every repository that main/"):
        check_delegation(ME, standing({"*": frozenset({R})}, {}), was, becomes, HERE)
    check_delegation(ME, standing({"*": frozenset({R, W})}, {}), was, becomes, HERE)


def test_the_sentence_names_the_patterns_that_decided() -> None:
    def reason(own: Any, groups: Any) -> str:
        return decide(standing(own, groups), ME, D, HERE[0], "x", owners=lambda: (), anonymous=True).reason

    assert reason({"main/*": {R}, "*": {D}}, {}) == "the user's grant for main/* in this repository is for read"
    assert reason({}, {"crew": {"main/*": {R}}}) == (
        "the grant of the user's group crew (for main/*) in this repository is for read"
    )
    crew = {"*/npm-a": {R}, "ma*": {W}, "main/n*": {W}}
    assert reason({}, {"crew": crew, "guests": {1: {W}}}) == (
        "the grant of the user's groups crew (for */npm-a, main/n*), guests in this repository is for read, write"
    )


class TestCatalog:
    """Rows of patterns."""

    def setup_method(self) -> None:
        self.scene = AuthServices()
        self.catalog = self.scene.catalog
        self.ada, self.bob = self.scene.user("ada"), self.scene.user("bob")
        self.scene.repository(1)

    def places(self, user: Any) -> dict[Any, Any]:
        return {each.place: each.actions for each in self.catalog.peek(grants_of, SubjectKind.USER, user.id)}

    def test_a_pattern_is_set_replaced_and_removed_beside_others(self) -> None:
        for place, actions in ((1, [R]), ("main/*", [W]), ("main/*", [D]), ("*", [])):
            self.catalog.do(set_permission, place, SubjectKind.USER, self.ada.id, actions)
        assert self.places(self.ada) == {1: {R}, "main/*": {D}, "*": frozenset()}
        self.catalog.do(set_permission, "*", SubjectKind.USER, self.ada.id, None)
        self.catalog.do(set_permission, "main/*", SubjectKind.USER, self.bob.id, [R])
        assert self.places(self.ada) == {1: {R}, "main/*": {D}}
        self.catalog.do(replace_grants, SubjectKind.USER, self.ada.id, {"x/*": frozenset({R})})
        assert (self.places(self.ada), self.places(self.bob)) == ({"x/*": {R}}, {"main/*": {R}})
        assert sorted(self.catalog.peek(list_patterns)) == ["main/*", "x/*"]

    def test_the_people_with_rights_include_those_by_patterns(self) -> None:
        self.catalog.do(set_permission, "main/*", SubjectKind.USER, self.ada.id, [R])
        self.catalog.do(set_permission, 1, SubjectKind.USER, self.bob.id, [R])

        def found(*patterns: str) -> list[str]:
            return self.catalog.peek(users_with_rights, 1, patterns, None, limit=10)  # type: ignore[no-any-return]

        assert (found(), found("main/*", "*")) == (["bob"], ["ada", "bob"])

    def test_there_are_not_too_many_patterns(self) -> None:
        many: dict[int | str, frozenset[Action]] = {f"m{number}/*": frozenset({R}) for number in range(MOST_PATTERNS)}
        self.catalog.do(replace_grants, SubjectKind.USER, self.ada.id, many)
        with pytest.raises(Invalid, match="at most 100 patterns"):
            self.catalog.do(set_permission, "one/*", SubjectKind.USER, self.ada.id, [R])
        with pytest.raises(Invalid, match="at most 100 patterns"):
            self.catalog.do(replace_grants, SubjectKind.USER, self.bob.id, {**many, "one/*": frozenset({R})})
        assert len(self.places(self.ada)) == MOST_PATTERNS
