"""
The languages of the console: which one a request wants, and what is written in it.

The text of templates and of Python is English. Other languages have a catalog each, ``console.po`` (the PO format of
GNU gettext) in ``web/languages``, whose messages are the English texts: in templates as ``marking.py`` finds them, in
Python those in calls of L{marked}, L{counted}, and of the methods ``text`` and ``counted`` of a L{Language}. A message
that a catalog lacks is written in English.

Catalogs hold words alone. What is put into them is escaped as everywhere, and so are they.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import cached_property, partial
from importlib.resources import files
from typing import Any, Final

from attrs import define, field
from markupsafe import Markup, escape

from pkgrepo.display import browser, duration, latency, number, plural, since, size
from pkgrepo.web.rendering.filters import FILTERS, sentence, time_with_age, when

FOLDER: Final = "languages"
CATALOG: Final = "console.po"
LONGEST_FIELD: Final = 300  # characters of Accept-Language that are read
_RANGE: Final = re.compile(r"\s*([A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*|\*)\s*(?:;\s*[qQ]=([01](?:\.[0-9]{0,3})?)\s*)?")
_LITERAL: Final = r'(?:[ \t]*"(?:[^"\\\n]|\\.)*"\n)+'
_ENTRY: Final = re.compile(
    rf"^msgid(?P<one>{_LITERAL})(?:msgid_plural(?P<many>{_LITERAL}))?(?P<forms>(?:msgstr(?:\[\d\])?{_LITERAL})+)", re.M
)
_FORM: Final = re.compile(rf"msgstr(?:\[\d\])?({_LITERAL})")
_LINE: Final = re.compile(r'"((?:[^"\\\n]|\\.)*)"\n')
_QUOTED: Final = Markup('<span lang="en">{}</span>')
_OPEN: Final = re.compile(r"%\((\w+)\)s|<(/?\w+)>")

Filled = tuple[Markup, tuple[tuple[Markup, str], ...]]
Message = str | tuple[str, str]  # one that counts has its singular and its plural


def marked(text: str) -> str:
    """A text of Python that is translated where it is shown: what finds messages knows it by this call."""
    return text


class Said(str):
    """
    A sentence in English that is a ``message`` with ``values``, so that it can be said in other languages.

    Of the values those are translated, too, that are such sentences.
    """

    __slots__ = ("message", "values")
    message: str
    values: Mapping[str, object]


def said(message: str, **values: object) -> Said:
    """A sentence with values in place of ``%(name)s``, such as that of an error."""
    made = Said(_with_values(message, values))
    made.message, made.values = message, values
    return made


def counted(one: str, many: str) -> tuple[str, str]:
    """The same of a text with a ``%(number)s``, for one and for more."""
    return one, many


JOB_KINDS: Final = {
    "gc": marked("garbage collection"),
    "rebuild": marked("rebuild of metadata"),
    "cache_purge": marked("purge of a cache"),
    "verify": marked("verification"),
    "retention": marked("retention"),
    "backup": marked("backup"),
    "rehearsal": marked("rehearsal of rules"),
    "drill": marked("drill of incidents"),
    "import": marked("import"),
    "twin": marked("static twin"),
}
# Values of the API that pages show as words; what is not among them, such as an action, is shown as the API has it.
WORDS: Final = (
    *("public", "private", "hidden", "Hosted", "Proxy", "Virtual", "Local", "S3"),
    *("live", "yanked", "deprecated", "blocked", "waiting", "approved", "denied", "open", "rejected", "expired"),
    *("running", "done", "failed", "cancelled", "pending", "delivered", "ok", "refused", "degraded", "unavailable"),
    *("critical", "high", "moderate", "medium", "low", "info", "unknown"),
    *("guest", "reporter", "developer", "maintainer", "owner", "person", "service", "user", "group"),
    *(
        "server",
        "storage",
        "repository",
        "project",
        "package",
        "version",
        "file",
        "folder",
        "link",
        "document",
        "image",
    ),
    *("added", "removed", "changed", "served", "held", "quarantine", "signature", "attestation"),
)
AGES: Final = {  # in the past and in the future
    "year": (
        counted("%(number)s year ago", "%(number)s years ago"),
        counted("in %(number)s year", "in %(number)s years"),
    ),
    "month": (
        counted("%(number)s month ago", "%(number)s months ago"),
        counted("in %(number)s month", "in %(number)s months"),
    ),
    "day": (counted("%(number)s day ago", "%(number)s days ago"), counted("in %(number)s day", "in %(number)s days")),
    "hour": (
        counted("%(number)s hour ago", "%(number)s hours ago"),
        counted("in %(number)s hour", "in %(number)s hours"),
    ),
    "minute": (
        counted("%(number)s minute ago", "%(number)s minutes ago"),
        counted("in %(number)s minute", "in %(number)s minutes"),
    ),
}
ON: Final = marked("%(program)s on %(system)s")
MOMENTS: Final = (marked("just now"), marked("in a moment"))


@define(eq=False, slots=False)
class Language:
    """
    A language by its ``code`` (BCP 47), with its own ``name``. ``form`` tells which form a number takes.

    ``catalog`` is the text of its catalog, None of the language that is written in the source. ``ranges`` are the
    language ranges (RFC 4647) that mean it; the longest that a browser names counts.
    """

    code: str
    name: str
    ranges: tuple[str, ...]
    form: Callable[[int], int]
    point: str = "."  # of decimal fractions
    stop: str = "."  # of sentences
    catalog: str | None = field(default=None, repr=False)
    _filled: dict[str, Filled] = field(init=False, factory=dict, repr=False)

    @cached_property
    def is_source(self) -> bool:
        """Whether texts are written as they stand in the source."""
        return self.catalog is None

    @cached_property
    def messages(self) -> Mapping[Message, tuple[str, ...]]:
        """The translations, each with its forms."""
        return dict(read_catalog(self.catalog or ""))

    def text(self, message: str, **values: object) -> str:
        """A text, with values in place of ``%(name)s``; one that is no message as it is."""
        found = self.messages.get(message)
        return _with_values(message if found is None else found[0], values)

    def counted(self, one: str, many: str, count: int, **values: object) -> str:
        """The form of a text for a number, which it has as ``%(number)s``."""
        found = self.messages.get((one, many))
        text = (one if count == 1 else many) if found is None else found[self.form(count)]
        return _with_values(text, {"number": number(count), **values})

    def fill(self, message: str, values: Mapping[str, Any]) -> Markup:
        """A text of a template, with its tags and values."""
        filled = self._filled.get(message)
        if filled is None:  # there are as many as texts in templates
            found = self.messages.get(message)
            filled = self._filled[message] = _pieces(message if found is None else found[0], values)
        last, pieces = filled
        if not pieces:
            return last
        made = list[str]()
        for words, name in pieces:
            made += (words, escape(values[name]))
        made.append(last)
        return Markup("".join(made))  # noqa: S704 - each part is escaped

    @cached_property
    def filters(self) -> Mapping[str, Callable[..., Any]]:
        """The filters of templates."""
        if self.is_source:
            return FILTERS
        return {
            **FILTERS,
            "plural": self.plural,
            "noun": self.noun,
            "sentence": self.sentence,
            "quoted": _QUOTED.format,
            "when": partial(when, write=self.age),
            "time_with_age": partial(time_with_age, write=self.age),
            "size": self.size,
            "duration": lambda length: self._decimal(duration(length)),
            "lasting": self.lasting,
            "latency": lambda seconds: self._decimal(latency(seconds)),
            "browser": self.browser,
        }

    def plural(self, count: int, one: str, many: str = "") -> str:
        """A number and its noun."""
        if self.is_source:
            return plural(count, one, many)
        return self.counted(*message_of(one, many), count)

    def noun(self, count: int, one: str, many: str = "") -> str:
        """The noun of a number that stands beside it."""
        return self.counted(*message_of(one, many), count, number="").strip()

    def sentence(self, text: str) -> str:
        """The text of an error as a sentence; what the API says, too, is English, and says so."""
        if self.is_source or not text:
            return sentence(text)
        message, values = (text.message, text.values) if isinstance(text, Said) else (text, {})
        found = self.messages.get(message)
        if found is None:
            return _QUOTED.format(sentence(text))
        shown = _with_values(found[0], {name: self._said(value) for name, value in values.items()})
        return shown[:1].upper() + shown[1:].rstrip(".。") + self.stop

    def _said(self, value: object) -> object:
        return self.text(value.message, **value.values) if isinstance(value, Said) else value

    def age(self, at: datetime, now: datetime) -> str:
        """How long ago a time was, or how long until it comes."""
        count, unit, is_past = since(at, now)
        if not count:
            return self.text(MOMENTS[0 if is_past else 1])
        return self.counted(*AGES[unit][0 if is_past else 1], count)

    def size(self, count: int | None) -> str:
        """A number of bytes with a unit."""
        return self.plural(count, "byte") if count is not None and count < 1024 else self._decimal(size(count))

    def lasting(self, seconds: float) -> str:
        """How long something lasts that may be for weeks."""
        days = int(seconds // 86400)
        return self.plural(days, "day") if days > 1 else self._decimal(duration(timedelta(seconds=seconds)))

    def browser(self, agent: str) -> str:
        """The program and the system in a User-Agent field, as far as they are known; else its beginning."""
        program, on, system = browser(agent).partition(" on ")
        return self.text(ON, program=program, system=system) if on else program

    def _decimal(self, text: str) -> str:
        return text.replace(".", self.point)


def message_of(one: str, many: str = "") -> tuple[str, str]:
    """The message of the filter ``plural`` with a noun."""
    return f"%(number)s {one}", f"%(number)s {many or one + 's'}"


def _with_values(text: str, values: Mapping[str, object]) -> str:
    """A text in which each value that is there has its place: what a catalog says can raise nothing."""
    return _OPEN.sub(lambda found: str(values[found[1]]) if found[1] in values else found[0], text) if values else text


def _pieces(text: str, values: Mapping[str, Any]) -> Filled:
    """The last words of a text, escaped, and those before each value with its name."""
    made, at = list[tuple[Markup, str]](), 0
    for found in _OPEN.finditer(text):
        name = found[1] or found[2]
        if name in values:
            made.append((escape(text[at : found.start()]), name))
            at = found.end()
    return escape(text[at:]), tuple(made)


def read_catalog(text: str) -> list[tuple[Message, tuple[str, ...]]]:
    """The translated messages of a catalog in the PO format, as the tool of this project writes it."""
    found = list[tuple[Message, tuple[str, ...]]]()
    for each in _ENTRY.finditer(text):
        one, many = _unquoted(each["one"]), each["many"] and _unquoted(each["many"])
        forms = tuple(_unquoted(form[1]) for form in _FORM.finditer(each["forms"]))
        if one and all(forms):
            found.append(((one, many) if many else one, forms))
    return found


def _unquoted(lines: str) -> str:
    text = "".join(_LINE.findall(lines))
    return str(json.loads(f'"{text}"')) if "\\" in text else text


ENGLISH: Final = Language("en", "English", ("en",), lambda count: int(count != 1))


def load_languages() -> dict[str, Language]:
    """The languages of the console by their codes, English first."""
    folder = files("pkgrepo.web") / FOLDER

    def catalog(name: str) -> str:
        return (folder / name / "LC_MESSAGES" / CATALOG).read_text("utf-8")

    found = (
        ENGLISH,
        Language("de", "Deutsch", ("de",), lambda count: int(count != 1), point=",", catalog=catalog("de")),
        Language(
            "zh-Hans",
            "简体中文",
            ("zh", "zh-hans", "zh-cn", "zh-sg"),  # not zh-hant, zh-tw and zh-hk, who read other signs
            lambda _: 0,
            stop="。",
            catalog=catalog("zh_Hans"),
        ),
    )
    return {each.code: each for each in found}


def choose_language(languages: Mapping[str, Language], chosen: str | None, accepted: str) -> Language:
    """
    The language that a visitor has ``chosen``, or else the one that ``accepted``, the field Accept-Language, prefers.

    The field is read as RFC 9110, section 12.5.4 says, and ranges are looked up by RFC 4647, section 3.4; English is
    the language of those who want none of ours.
    """
    if chosen is not None and chosen in languages:
        return languages[chosen]
    first = next(iter(languages.values()))
    best, quality = first, 0.0
    for each in accepted[:LONGEST_FIELD].split(","):
        found = _RANGE.fullmatch(each)
        weight = float(found[2] or 1) if found else 0.0
        if found and quality < weight <= 1:
            language = first if found[1] == "*" else _looked_up(languages, found[1].lower())
            if language is not None:
                best, quality = language, weight
    return best


def _looked_up(languages: Mapping[str, Language], wanted: str) -> Language | None:
    """The language of the longest range that a tag begins with; a script or region that is another one is refused."""
    if wanted.startswith(("zh-hant", "zh-tw", "zh-hk", "zh-mo")):
        return None
    while wanted:
        for language in languages.values():
            if wanted in language.ranges:
                return language
        wanted = wanted.rpartition("-")[0]
    return None
