"""
The form that was refused, on the page that is shown again: with what was entered, and the field that is wrong.

It is the first form of the page that was sent to the same address with the same hidden fields. Texts, boxes and
selections are as they were entered; passwords and files are not sent back. The sentence of the error stands below the
field that it is about, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import unescape
from typing import Final

from attrs import define, field
from markupsafe import escape

_FORM: Final = re.compile(r'<form\b(?=[^>]*\bmethod="post")[^>]*\baction="([^"]*)"[^>]*>.*?</form>', re.DOTALL)
_FIELD: Final = re.compile(
    r"<textarea\b(?P<area>[^>]*)>[^<]*</textarea>|<(?P<kind>input|select)\b(?P<field>[^>]*)>"
    r"|<option\b(?P<option>[^>]*)>(?P<text>[^<]*)"
)
_ATTRIBUTE: Final = re.compile(r'([\w-]+)(?:="([^"]*)")?')
_DETAILS: Final = re.compile(r"<details\b([^>]*)>|</details>")
_CONTROL: Final = re.compile(r"<(?:label|input|select|textarea|button|fieldset|details|table)\b")
_KEPT: Final = frozenset({"hidden", "password", "file", "submit", "button"})  # these stay as the page has them
MOST_STEPS: Final = 12  # of a pointer
CSRF: Final = "csrf"  # the field with a value of the session
UNCHANGED: Final = "unchanged"  # the field with the ETags of what the page of the form was made of
OF_PAGE: Final = frozenset({CSRF, UNCHANGED})  # which differ from one time to the next
WRONG: Final = "wrong-field"  # the id of the sentence below a field


def refilled(page: str, action: str, sent: Mapping[str, Sequence[str]], pointer: str, sentence: str) -> str:
    """
    A page in whose form for ``action`` the fields are as they were ``sent``, by name.

    The field that ``pointer`` names, a JSON pointer or the name of a field, is marked and has the ``sentence``. A page
    without the form stays as it is.
    """
    for found in _FORM.finditer(page):
        if unescape(found[1]).partition("?")[0] == action and _is_same(found[0], sent):
            form = _Form(sent, next(_candidates(found[0], pointer), ""))
            text = _FIELD.sub(form.fill, found[0])
            if form.wrong:
                text = _with_sentence(text, sentence)
            return _unfolded(page[: found.start()]) + text + page[found.end() :]
    return page


def _is_same(form: str, sent: Mapping[str, Sequence[str]]) -> bool:
    """Whether the hidden fields of a form are those that were sent, but for those that every form has."""
    for each in re.finditer(r'<input type="hidden"([^>]*)>', form):
        given = _attributes(each[1])
        name = given.get("name") or ""
        if name not in OF_PAGE and given.get("value", "") not in sent.get(name, [""]):
            return False
    return True


def _candidates(form: str, pointer: str) -> Iterator[str]:
    """The names of fields of the form that a pointer may mean, the closest one first; data-for has names of the API."""
    names = {name: name for each in re.findall(r'\bname="([^"]*)"', form) if (name := unescape(each)) not in OF_PAGE}
    for name, meant in re.findall(r'\bname="([^"]*)" data-for="([^"]*)"', form):
        names |= dict.fromkeys(meant.split(), name)
    if pointer in names:
        yield names[pointer]
    steps = pointer.strip("/").split("/")[:MOST_STEPS]
    for end in range(len(steps), 0, -1):  # what is in a value is about the field that has all of it
        for start in range(end):
            path = "/".join(steps[start:end])
            yield from (names[each] for each in (f"/{path}", path) if each and each in names)


@define
class _Form:
    """Fills one field after the other; ``wrong`` is the name of the one that is marked, as long as none is."""

    sent: Mapping[str, Sequence[str]]
    wrong: str
    _select: str = ""
    _used: dict[str, int] = field(factory=dict)

    def fill(self, found: re.Match[str]) -> str:
        """The field with what was sent."""
        if found["option"] is not None:
            return self._filled_option(found)
        kind = found["kind"] or "textarea"
        given = _attributes(found["area"] if kind == "textarea" else found["field"])
        name, type_ = given.get("name") or "", given.get("type") or ""
        if kind == "select":
            self._select = name
        if not name or (kind == "input" and type_ in _KEPT and not self._is_wrong(name, type_)):
            return found[0]
        given.pop("autofocus", None)
        if kind == "input" and type_ in {"checkbox", "radio"}:
            given.pop("checked", None)
            if given.get("value", "on") in self.sent.get(name, ()):
                given["checked"] = None
        elif kind == "input" and type_ not in _KEPT:
            given["value"] = self._next(name, given.get("value") or "")
        if self._is_wrong(name, type_):
            given |= {"aria-invalid": "true", "aria-describedby": WRONG, "autofocus": None}
            self._used[""] = 1
        tag = f"<{kind}{_written(given)}>"
        return tag + f"{escape(self._next(name, ''))}</textarea>" if kind == "textarea" else tag

    def _is_wrong(self, name: str, type_: str) -> bool:
        return name == self.wrong and type_ != "hidden" and "" not in self._used

    def _next(self, name: str, default: str) -> str:
        """What was sent for the next field of a name; ``default`` if the form was sent without it."""
        at = self._used[name] = self._used.get(name, -1) + 1
        values = self.sent.get(name, ())
        return values[at] if at < len(values) else default

    def _filled_option(self, found: re.Match[str]) -> str:
        given = _attributes(found["option"])
        given.pop("selected", None)
        if self._select not in self.sent:
            return found[0]
        value = given.get("value")
        if (unescape(found["text"]).strip() if value is None else value) in self.sent[self._select]:
            given["selected"] = None
        return f"<option{_written(given)}>{found['text']}"


def _attributes(text: str) -> dict[str, str | None]:
    return {
        found[1]: None if found[2] is None else unescape(found[2]) for found in _ATTRIBUTE.finditer(text) if found[1]
    }


def _written(attributes: Mapping[str, str | None]) -> str:
    return "".join(f" {name}" if value is None else f' {name}="{escape(value)}"' for name, value in attributes.items())


def _with_sentence(form: str, sentence: str) -> str:
    """The form with the sentence below the marked field, or below the label that it is in."""
    mark = form.find(f'aria-describedby="{WRONG}"')
    if mark < 0:
        return form
    said = f'<p class="wrong" id="{WRONG}">{escape(sentence)}</p>'
    end = form.index(">", mark) + 1
    for close in ("</select>", "</textarea>"):
        if form.rfind(f"<{close[2:-1]}", 0, end) > max(form.rfind("<input", 0, end), form.rfind(close, 0, end)):
            end = form.index(close, end) + len(close)
    label = form.find("</label>", end)
    other = _CONTROL.search(form, end)
    if label >= 0 and (other is None or label < other.start()):
        end = label + len("</label>")
    return form[:end] + said + form[end:]


def _unfolded(before: str) -> str:
    """The part of a page before a form, with open what the form is folded in."""
    around: list[re.Match[str]] = []
    for each in _DETAILS.finditer(before):
        if each[0].startswith("</"):
            around = around[:-1]
        else:
            around.append(each)
    for each in reversed(around):
        if not re.search(r"\bopen\b", each[1]):
            before = f"{before[: each.start()]}<details open{each[1]}>{before[each.end() :]}"
    return before
