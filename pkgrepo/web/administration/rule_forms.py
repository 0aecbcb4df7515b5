"""
Lists of named rules on a page: a table, a form for one rule, and all of them as JSON.

A page has three forms. Those of one rule are sent below the address of the page, to ``/one`` and ``/remove``; they
change the list as it is stored then, so that two people who change two rules keep both. The JSON is that of the list,
or of an object that has the list as ``rules`` beside other fields.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from attrs import Factory, evolve, frozen

from pkgrepo.errors import Conflict, Invalid
from pkgrepo.http.responses import Response
from pkgrepo.web.rendering.languages import marked, said
from pkgrepo.web.tables import Page, PageTable
from pkgrepo.web.visits import Form, Visit

from .schema_fields import Field, object_fields, object_from

Rule = dict[str, Any]
Whole = dict[str, Any]  # with the list as ``rules``
CHOSEN: Final = "chosen"  # the name that a changed rule had


@frozen
class RuleRow:
    """
    A rule in a table: the values of its fields that are no groups, by their keys, also of those that it does not have.

    ``facts`` are the values of its groups that are not as by default, as triples of the group, the label and the text.
    """

    values: Mapping[str, Any]
    facts: Sequence[tuple[str, str, str]]


@frozen
class RuleForm:
    """
    What the form of one rule shows: ``chosen`` is the rule that it changes, empty for a new one.

    ``further`` fields are folded. ``examples`` are pairs of a name and a sentence, ``example`` that of a new rule.
    """

    chosen: str
    fields: Sequence[Field]
    further: Sequence[Field]
    examples: Sequence[tuple[str, str]]
    example: str
    open: bool


def _split(fields: Sequence[Field], first: Sequence[str]) -> tuple[list[Field], list[Field]]:
    """The fields that are asked ``first``, in this order, and the others; a group is split by its fields."""
    if not first:
        return list(fields), []
    every = {each.name: each for each in (*fields, *(child for group in fields for child in group.children))}
    rest = []
    for each in fields:
        if each.kind == "group":
            children = [child for child in each.children if child.name not in first]
            rest += [evolve(each, children=children)] if children else []
        elif each.name not in first:
            rest.append(each)
    return [every[name] for name in first], rest


def _row(fields: Sequence[Field]) -> RuleRow:
    groups = [each for each in fields if each.kind == "group"]
    facts = [(group.name[1:], each.label, _text(each)) for group in groups for each in group.children if each.changed]
    return RuleRow({each.name[1:]: each.value for each in fields if each not in groups}, facts)


def _text(field: Field) -> str:
    if field.kind == "flag":
        return "yes" if field.value else "no"
    return ", ".join(str(field.value).splitlines())


@frozen
class RuleEditor:
    """
    The forms of lists of rules: the ``schema`` of one, and ``examples`` that the form of a new one suggests.

    ``kind`` is what all of them are as JSON, ``list`` or ``dict``. ``first`` are the names of fields that are asked
    first, all if there are none; ``about`` has a sentence about an example.
    """

    schema: Mapping[str, Any]
    examples: Mapping[str, Rule]
    kind: type
    first: tuple[str, ...] = ()
    about: Mapping[str, str] = Factory(dict)

    def mount(
        self,
        pages: PageTable,
        page: Page,
        read: Callable[[Visit], Awaitable[Whole]],
        save: Callable[[Visit, Form, Whole], Awaitable[Response | None]],
    ) -> None:
        """Add the targets of the forms of a ``page``, which change what ``read`` returns, and ``save`` it."""
        path = pages.path_of(page)

        @pages.post(path, page=page)
        async def save_all(visit: Visit, form: Form) -> Response | None:
            value = _parsed(form.secret("rules"), self.kind)
            return await save(visit, form, {"rules": value} if self.kind is list else value)

        @pages.post(f"{path}/one", page=page)
        async def save_one(visit: Visit, form: Form) -> Response | None:
            visit.unchanged.merge()
            whole = await read(visit)
            return await save(visit, form, {**whole, "rules": _with_rule(self.schema, rules_of(whole), form)})

        @pages.post(f"{path}/remove", then=path)
        async def remove(visit: Visit, form: Form) -> Response | None:
            visit.unchanged.merge()
            whole = await read(visit)
            return await save(visit, form, {**whole, "rules": _without_rule(rules_of(whole), form)})

    def values(self, visit: Visit, whole: Whole) -> dict[str, Any]:
        """
        What the template of a page shows of rules: as they are stored, or as a form has them that is shown again.

        The form of one rule is that of the rule or example that the query names; that of a new rule without one. What
        cannot be read of a form is shown as it is stored.
        """
        rules, sent, text_sent = rules_of(whole), CHOSEN in visit.sent, "rules" in visit.sent
        chosen = visit.sent.text(CHOSEN) if sent else visit.query("rule")
        rule = next((each for each in rules if each["name"] == chosen), None)
        chosen = "" if rule is None else chosen
        example = self.examples.get(visit.query("example"))
        value = rule or example or {}
        if sent:
            with suppress(Invalid):  # the page says so
                value = object_from(self.schema, visit.sent)
        first, further = _split(object_fields(self.schema, value), self.first)
        shown = rules if self.kind is list else whole or {"rules": []}
        return {
            "stored": [_row(object_fields(self.schema, each)) for each in rules],
            "form": RuleForm(
                chosen=chosen,
                fields=first,
                further=further,
                examples=[(each, self.about.get(each, "")) for each in self.examples],
                example=visit.query("example") if example else "",
                open=bool(chosen or example or sent),
            ),
            "text": visit.sent.secret("rules") if text_sent else json.dumps(shown, indent=2, ensure_ascii=False),
            "text_sent": text_sent,
        }


def rules_of(whole: Whole) -> list[Rule]:
    """The list of rules; an empty one without any."""
    return whole.get("rules") or []


def _with_rule(schema: Mapping[str, Any], stored: Sequence[Rule], form: Form) -> list[Rule]:
    """
    The rules with the one of a form: in place of the one that it changes, or as the last.

    :raises Invalid: a field cannot be read; :raises Conflict: the rule was removed or renamed meanwhile
    """
    rule, chosen = object_from(schema, form), form.text(CHOSEN)
    if not chosen:
        return [*stored, rule]
    return [rule if at == _place(stored, chosen) else each for at, each in enumerate(stored)]


def _without_rule(stored: Sequence[Rule], form: Form) -> list[Rule]:
    """The rules without the one that a form names. :raises Conflict: there is none of this name"""
    gone = _place(stored, form.text(CHOSEN))
    return [each for at, each in enumerate(stored) if at != gone]


def _parsed(text: str, kind: type) -> Any:
    """The list or object in a text; an empty one if it is empty. :raises Invalid: it is something else"""
    try:
        value = json.loads(text) if text.strip() else kind()
    except (ValueError, RecursionError) as error:
        raise Invalid(said("the rules are not JSON: %(error)s", error=error)) from None
    if not isinstance(value, kind):
        raise Invalid(marked("the rules are a JSON array") if kind is list else marked("the rules are a JSON object"))
    return value


def _place(stored: Sequence[Rule], name: str) -> int:
    for at, each in enumerate(stored):
        if each["name"] == name:
            return at
    raise Conflict(said("there is no rule %(name)s any more", name=repr(name)))
