"""
Lists of named rules on a page: a table, a form for one rule, and all of them as JSON.

A page has three forms. Those of one rule are sent below the address of the page, to ``/one`` and ``/remove``; they
change the list as it is stored then, so that two people who change two rules keep both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from attrs import frozen

from pkgrepo.errors import Conflict, Invalid
from pkgrepo.web.visits import Form, Visit

from .schema_fields import Field, object_fields, object_from

Rule = dict[str, Any]
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
    """What the form of one rule shows: ``chosen`` is the rule that it changes, empty for a new one."""

    chosen: str
    fields: Sequence[Field]
    examples: Sequence[str]
    open: bool


def rule_rows(schema: Mapping[str, Any], rules: Sequence[Rule]) -> list[RuleRow]:
    """The rules as a table shows them."""
    return [_row(object_fields(schema, each)) for each in rules]


def _row(fields: Sequence[Field]) -> RuleRow:
    groups = [each for each in fields if each.kind == "group"]
    facts = [
        (group.name[1:], each.label.lower(), _text(each)) for group in groups for each in group.children if each.changed
    ]
    return RuleRow({each.name[1:]: each.value for each in fields if each not in groups}, facts)


def _text(field: Field) -> str:
    if field.kind == "flag":
        return "yes" if field.value else "no"
    return ", ".join(str(field.value).splitlines())


def rule_form(
    visit: Visit, schema: Mapping[str, Any], stored: Sequence[Rule], examples: Mapping[str, Rule], sent: Form | None
) -> RuleForm:
    """
    The form of the rule or example that the query names; that of a new rule without one.

    ``sent`` is a form that was refused: it is shown again. What cannot be read of it is shown as it is stored.
    """
    chosen = visit.query("rule") if sent is None else sent.text(CHOSEN)
    rule = next((each for each in stored if each["name"] == chosen), None)
    chosen = "" if rule is None else chosen
    example = examples.get(visit.query("example"))
    value = rule or example or {}
    if sent is not None:
        with suppress(Invalid):  # the page says so
            value = object_from(schema, sent)
    open_ = bool(chosen or example or sent)
    return RuleForm(chosen=chosen, fields=object_fields(schema, value), examples=list(examples), open=open_)


def with_rule(schema: Mapping[str, Any], stored: Sequence[Rule], form: Form) -> list[Rule]:
    """
    The rules with the one of a form: in place of the one that it changes, or as the last.

    :raises Invalid: a field cannot be read; :raises Conflict: the rule was removed or renamed meanwhile
    """
    rule, chosen = object_from(schema, form), form.text(CHOSEN)
    if not chosen:
        return [*stored, rule]
    return [rule if at == _place(stored, chosen) else each for at, each in enumerate(stored)]


def without_rule(stored: Sequence[Rule], form: Form) -> list[Rule]:
    """The rules without the one that a form names. :raises Conflict: there is none of this name"""
    gone = _place(stored, form.text(CHOSEN))
    return [each for at, each in enumerate(stored) if at != gone]


def parsed(text: str, kind: type) -> Any:
    """The list or object in a text; an empty one if it is empty. :raises Invalid: it is something else"""
    try:
        value = json.loads(text) if text.strip() else kind()
    except (ValueError, RecursionError) as error:
        raise Invalid(f"the rules are not JSON: {error}") from None
    if not isinstance(value, kind):
        raise Invalid("the rules are a JSON " + ("array" if kind is list else "object"))
    return value


def _place(stored: Sequence[Rule], name: str) -> int:
    for at, each in enumerate(stored):
        if each["name"] == name:
            return at
    raise Conflict(f"there is no rule {name!r} any more")
