"""
Which grant decides in a repository: that of its name, or of a pattern of names.

A grant is for a *place*: the catalog key of one repository, which stays when that gets another name, or a pattern,
which is compared with the names of now. Of one user or group the most exact grant decides:

====  ====================================================================================
1     the grant of the repository itself
2     of patterns that match its name, those with the most characters that stand for
      themselves: ``main/npm-*`` before ``main/*``, and ``main/*`` before ``*``
3     of several that are equally exact one without actions, which is a refusal; without
      such a one all of them, whose actions add up
====  ====================================================================================

The actions of several groups add up, whether they come from names or from patterns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from attrs import field, frozen

from pkgrepo.auth.patterns import covers, may_meet, most_exact
from pkgrepo.model import Action, Grant, Repository

MOST_KNOWN: Final = 64  # repositories in one memory; what is asked of one repository is asked several times in a row

Places = Mapping[int | str, frozenset[Action]]  # actions by place


@frozen
class Granted:
    """The actions that grants give in a repository; ``source`` names these grants, ``reason`` is the whole sentence."""

    actions: frozenset[Action]
    source: str
    reason: str


@frozen
class Subject:
    """The grants of one user or group; ``name`` is that of the group, and empty for the user."""

    name: str
    places: Places
    patterns: Sequence[str] = field(init=False, eq=False)

    @patterns.default
    def _patterns(self) -> Sequence[str]:
        return [each for each in self.places if isinstance(each, str)]

    def deciding(self, repository: Repository) -> tuple[Sequence[str], frozenset[Action]] | None:
        """The patterns that decide in a repository (none: the grant for its name) and the actions; None: no grant."""
        exact = self.places.get(repository.id)
        if exact is not None:
            return (), exact
        best = most_exact(self.patterns, repository.path.lower())
        if not best:
            return None
        best = [each for each in best if not self.places[each]] or best
        return best, frozenset[Action]().union(*(self.places[each] for each in best))

    def covers(self, pattern: str) -> bool:
        """Whether a grant for a pattern certainly holds wherever ``pattern`` matches, but for more exact ones."""
        return any(covers(each, pattern) for each in self.patterns)

    def all_have(self, action: Action, pattern: str, *, named: bool) -> bool:
        """
        Whether each grant that may decide where a pattern matches has an action.

        With ``named`` that includes all grants for one repository, which may get a name that matches.
        """
        return all(
            action in actions
            for place, actions in self.places.items()
            if (named if isinstance(place, int) else may_meet(place, pattern))
        )


class Grants:
    """The grants of a user, or of all groups of a user together."""

    def __init__(self, subjects: Iterable[Subject] = ()) -> None:
        self.subjects = {each.name: each for each in subjects}
        self._patterns = any(each.patterns for each in self.subjects.values())
        self._known: dict[tuple[int, str], Granted | None] = {}
        self._named: dict[int, Granted] = {}
        if not self._patterns:
            for key in {place for each in self.subjects.values() for place in each.places if isinstance(place, int)}:
                found = [(each.name, (), each.places[key]) for each in self.subjects.values() if key in each.places]
                self._named[key] = _granted(found)

    @classmethod
    def of_user(cls, places: Places) -> Grants:
        """The grants of a user, by place."""
        return cls([Subject("", places)] if places else ())

    @classmethod
    def of_groups(cls, groups: Mapping[str, Places]) -> Grants:
        """The grants of groups, by their names and by place."""
        return cls(Subject(name, places) for name, places in groups.items() if places)

    def find(self, repository: Repository) -> Granted | None:
        """What is granted in a repository; None: nothing, and no refusal either."""
        if not self._patterns:
            return self._named.get(repository.id)
        key = (repository.id, repository.path)
        if key in self._known:
            return self._known[key]
        found = [
            (each.name, *deciding)
            for each in self.subjects.values()
            if (deciding := each.deciding(repository)) is not None
        ]
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        granted = self._known[key] = _granted(found) if found else None
        return granted

    def of(self, name: str) -> Places:
        """The grants of a group, or with an empty name of the user, by place."""
        found = self.subjects.get(name)
        return {} if found is None else found.places


def places_of(grants: Iterable[Grant]) -> dict[int | str, frozenset[Action]]:
    """The actions of the grants of one user or group, by place."""
    return {each.place: each.actions for each in grants}


def _granted(found: Sequence[tuple[str, Sequence[str], frozenset[Action]]]) -> Granted:
    """What the grants of one or more subjects give: their names, the patterns that decide, and the actions."""
    actions = frozenset[Action]().union(*(each for _, _, each in found))
    named = [f"{name} (for {', '.join(patterns)})" if patterns else name for name, patterns, _ in found]
    if found[0][0]:
        source = f"the grant of the user's {'groups' if len(found) > 1 else 'group'} {', '.join(named)}"
    else:
        source = f"the user's grant{named[0].replace(' (for ', ' for ').removesuffix(')')}"
    words = ", ".join(each for each in Action if each in actions) or "no action at all"
    return Granted(actions, source, f"{source} in this repository is for {words}")
