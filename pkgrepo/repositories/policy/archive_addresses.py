"""Where archives of the source of packages are: the addresses that an operator gives for hosts of repositories."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import quote

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.outbound.urls import parse_url

_PLACES: Final = ("{owner}", "{repo}", "{tag}")
_BRACES: Final = re.compile(r"[{}]")
_COMMIT: Final = re.compile(r"[0-9a-f]{4,64}", re.IGNORECASE)  # git takes four digits for the name of a commit
_TAGS: Final = "refs/tags/{tag}"
_ODD: Final = frozenset({"", ".", ".."})  # parts of a path that have another meaning


@frozen
class ArchiveAddresses:
    """
    ``templates`` are addresses by the host of a repository, as metadata of packages name it in lower case.

    ``{owner}``, ``{repo}`` and ``{tag}`` stand for what is asked for.
    """

    templates: Mapping[str, str] = MappingProxyType({})

    @classmethod
    def checked(cls, given: Mapping[str, str]) -> ArchiveAddresses:
        """Those that a configuration gives. :raises Invalid: one is no address, or has not all three places"""
        for host, template in given.items():
            if not all(each in template for each in _PLACES):
                raise Invalid(f"the address for {host} has not all of {', '.join(_PLACES)}")
            try:
                rest = template
                for each in _PLACES:
                    rest = rest.replace(each, "x")
                parse_url(rest)
            except ValueError as error:
                raise Invalid(f"the address for {host} cannot be used: {error}") from None
            if _BRACES.search(rest):
                raise Invalid(f"the address for {host} has other braces than {', '.join(_PLACES)}")
        return cls({host.lower(): template for host, template in given.items()})

    def of(self, sources: Iterable[str]) -> str:
        """
        The address of archives of the first of some repositories (HOST/OWNER/NAME) whose host is known; empty for none.

        It has the place ``{tag}``.
        """
        for each in sorted(sources):
            host, _, path = each.partition("/")
            owner, _, repo = path.partition("/")
            template = self.templates.get(host)
            if template is not None and not {owner, repo} & _ODD and "/" not in repo:
                return template.replace("{owner}", quote(owner, safe="")).replace("{repo}", quote(repo, safe=""))
        return ""


def with_tag(address: str, tag: str) -> str:
    """
    The address of the archive of a tag; empty if there can be none.

    That is so where the name of the tag would change more than its place, or makes no URL. One that may as well be the
    beginning of a commit's name is asked for below ``refs/tags/`` alone: hosts find commits of forks, too, and who
    publishes a version may choose its number.
    """
    if _ODD & {*tag.split("/")} or (_COMMIT.fullmatch(tag) and _TAGS not in address):
        return ""
    url = address.replace("{tag}", quote(tag, safe="/@"))
    try:
        parse_url(url)
    except ValueError:  # it is too long
        return ""
    return url


NO_ARCHIVES: Final = ArchiveAddresses()
