"""What an access token is for, as a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

VERBS: Final = {
    "read": "read",
    "write": "publish",
    "overwrite": "replace",
    "delete": "delete",
    "edit": "change settings",
    "admin": "administer",
}
SCOPES: Final = {
    "api:read": "read your account, tokens and projects",
    "api:write": "change your account and tokens",
    "users": "manage users",
    "system": "manage storages and repositories",
    "metrics": "read the metrics of the server",
    "audit": "read the audit log",
}


def sentence_of(
    access: str,
    repositories: Sequence[Mapping[str, Any]],
    scopes: Sequence[str],
    *,
    days: int | None = None,
    until: datetime | None = None,
) -> str:
    """
    What a token is for, as a sentence.

    ``access`` is owner, listed or none; of ``repositories`` each has a pattern ``repository``, its ``actions`` and the
    patterns of its ``packages``. The token ends after ``days``, or ``until`` then.
    """
    if access == "owner":
        abilities = ["do in every repository what you may do there"]
    elif access == "listed":
        abilities = [_ability(each) for each in repositories]
    else:
        abilities = []
    abilities += [SCOPES.get(each, each) for each in scopes]
    able = _joined(abilities) or "do nothing that needs a permission"
    end = f" for {days} {'day' if days == 1 else 'days'}" if days else f" until {until:%Y-%m-%d}" if until else ""
    return f"Programs that have this token may {able}{end}, as long as you may do so yourself."


def _ability(scope: Mapping[str, Any]) -> str:
    verbs = _joined([VERBS.get(each, each) for each in scope["actions"]]) or "do nothing with"
    packages = list(scope["packages"])
    what = "packages" if not packages or packages == ["*"] else f"the packages {_joined(packages)}"
    pattern = scope["repository"]
    if pattern in ("*", "*/*"):
        where = "every repository"
    else:
        where = f"the repositories that are named like {pattern}" if "*" in pattern else pattern
    return f"{verbs} {what} in {where}"


def _joined(words: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)
