"""How a route declares the command of ``pkgrepo`` that makes its call."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen


@frozen
class Command:
    """
    A command that makes one call, and prints what came of it.

    ``usage`` are its words, then its arguments, such as ``group create NAME``: the first of them stand for the
    parameters of the path, in their order, the others for fields of the body or query with their names. ``options`` are
    separated by commas: ``description`` is the option of that field, ``rename: name`` that of the field name, ``query
    -q: q`` one with a short form, ``active/inactive`` a flag that may also be off, and ``limit 50`` one with a default.
    Their help is the meaning of the field.

    ``done`` is the sentence for what was done, and ``tried`` that with --dry-run. A list is a table of ``columns``, an
    object has ``fields``, which are separated by bars and written as ``TITLE: what``, where what is a field, several
    with "or" between them, or a template; see ``client/generated``. ``rows`` is the field of an object that has the
    list. ``nothing`` is the
    sentence for an empty list, and ``ask`` the question before. ``sends`` are
    parameters of the query that are always sent. ``more`` is said after the summary of the route.
    """

    usage: str
    done: str = ""
    options: str = ""
    columns: str = ""
    fields: str = ""
    rows: str = ""
    nothing: str = ""
    ask: str = ""
    tried: str = ""
    sends: Mapping[str, str] = {}
    more: str = ""
