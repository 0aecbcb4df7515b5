"""What an access token is for, as a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from pkgrepo.web.rendering.languages import ENGLISH, Language, counted, marked

VERBS: Final = {
    "read": marked("read"),
    "write": marked("publish"),
    "overwrite": marked("replace"),
    "delete": marked("delete"),
    "edit": marked("change settings"),
    "admin": marked("administer"),
}
SCOPES: Final = {
    "api:read": marked("read your account, tokens and projects"),
    "api:write": marked("change your account and tokens"),
    "users": marked("manage users"),
    "system": marked("manage storages and repositories"),
    "metrics": marked("read the metrics of the server"),
    "audit": marked("read the audit log"),
}
WHOLE: Final = marked("Programs that have this token may %(able)s, as long as you may do so yourself.")
FOR_DAYS: Final = counted(
    "Programs that have this token may %(able)s for %(number)s day, as long as you may do so yourself.",
    "Programs that have this token may %(able)s for %(number)s days, as long as you may do so yourself.",
)
UNTIL: Final = marked("Programs that have this token may %(able)s until %(date)s, as long as you may do so yourself.")


def sentence_of(
    access: str,
    repositories: Sequence[Mapping[str, Any]],
    scopes: Sequence[str],
    *,
    days: int | None = None,
    until: datetime | None = None,
    language: Language = ENGLISH,
) -> str:
    """
    What a token is for, as a sentence.

    ``access`` is owner, listed or none; of ``repositories`` each has a pattern ``repository``, its ``actions`` and the
    patterns of its ``packages``. The token ends after ``days``, or ``until`` then.
    """
    if access == "owner":
        abilities = [language.text("do in every repository what you may do there")]
    elif access == "listed":
        abilities = [_ability(language, each) for each in repositories]
    else:
        abilities = []
    abilities += [language.text(SCOPES.get(each, each)) for each in scopes]
    able = _joined(language, abilities) or language.text("do nothing that needs a permission")
    if days:
        return language.counted(*FOR_DAYS, days, able=able, number=days)
    return language.text(UNTIL, able=able, date=f"{until:%Y-%m-%d}") if until else language.text(WHOLE, able=able)


def _ability(language: Language, scope: Mapping[str, Any]) -> str:
    verbs = _joined(language, [language.text(VERBS.get(each, each)) for each in scope["actions"]])
    packages = list(scope["packages"])
    if not packages or packages == ["*"]:
        what = language.text("packages")
    else:
        what = language.text("the packages %(names)s", names=_joined(language, packages))
    pattern = scope["repository"]
    if pattern in ("*", "*/*"):
        where = language.text("every repository")
    else:
        like = language.text("the repositories that are named like %(pattern)s", pattern=pattern)
        where = like if "*" in pattern else pattern
    if not verbs:
        return language.text("do nothing with %(what)s in %(where)s", what=what, where=where)
    return language.text("%(verbs)s %(what)s in %(where)s", verbs=verbs, what=what, where=where)


def _joined(language: Language, words: Sequence[str]) -> str:
    if not words[1:]:
        return "".join(words)
    first = language.text(", ").join(words[:-1])
    return language.text("%(first)s and %(last)s", first=first, last=words[-1])
