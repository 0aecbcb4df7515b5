"""How a route declares the command of ``pkgrepo`` that makes its call."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen


@frozen
class Command:
    """
    A command that makes one call, and prints what came of it.

    ``usage`` are its words, then its arguments, such as ``group create NAME``: the first of them stand for the
    parameters of the path, in their order, the others for fields of the body or query with their names. An argument
    may be written as an option, ``--project KEY``, and ``WORDS...=q`` is that of the field q; ``NAME=`` is not sent.
    Several routes may have the same words: that whose arguments fit what is written is called, where ``'server'`` is
    this word itself, ``project:KEY`` a text that begins so, and STORAGE/REPOSITORY comes before STORAGE. Flags after
    the other arguments, such as ``--group``, are given for this call and not for the others.

    ``options`` are separated by commas: ``description`` is the option of that field, ``rename: name`` that of the
    field name, ``query -q: q`` one with a short form, ``active/inactive`` a flag that may also be off, ``limit 50``
    one with a default, ``issuer!`` one that is needed, and ``quota:size`` one whose text is read as the client's
    ``READ`` says. Their help is the meaning of the field.

    ``done`` is the sentence for what was done, and ``tried`` that with --dry-run. A list is a table of ``columns``, an
    object has ``fields``, which are separated by bars and written as ``TITLE: what``, where what is a field, several
    with "or" between them, or a template; see ``client/generated``. ``rows`` is the field of an object that has the
    list; one with fields, too, is shown with both. With ``whole`` --json prints the object, not its list. ``nothing``
    is the sentence for an empty list, and ``ask`` the question before. ``lines`` are written before ``done``. After
    that, ``notes`` is what is noted, and ``fails`` an error, if they are not empty. ``sends`` are fields of the body
    or query that are always sent, which may be templates. ``warned``: the warnings of each record of a list are noted.
    ``said`` is the help of arguments that are options, and ``unfit`` the error if no route fits, and ``unchanged``
    that if there is nothing to change. ``about`` is said in place of the summary of the route, and ``more`` after it.
    """

    usage: str
    done: str = ""
    options: str = ""
    columns: str = ""
    fields: str = ""
    rows: str = ""
    whole: bool = False
    lines: str = ""
    nothing: str = ""
    ask: str = ""
    tried: str = ""
    notes: str = ""
    fails: str = ""
    unfit: str = ""
    unchanged: str = ""
    said: Mapping[str, str] = {}
    warned: bool = False
    sends: Mapping[str, str | None] = {}
    about: str = ""
    more: str = ""
