"""
The grammar of package names, dist-tags and tarball names.

A name is its own key: names of old packages may have upper-case letters, and two may differ in case alone.
"""

from __future__ import annotations

import re
from typing import Final

from pkgrepo.auth.permissions.format_rights import FormatRights
from pkgrepo.errors import Invalid
from pkgrepo.formats.npm import semver
from pkgrepo.repositories.semver import Version
from pkgrepo.untrusted.text import quoted

LONGEST_NAME: Final = 214  # characters, scope included
LONGEST_TAG: Final = 128  # characters; ours, npm has no limit
DEFAULT_TAG: Final = "latest"
TARBALL: Final = ".tgz"
BUNDLE: Final = ".sigstore"

# The characters that encodeURIComponent does not encode; a part of an existing name may have these ...
_READABLE: Final = re.compile(r"[A-Za-z0-9._!~*'()-]+")
# ... and a part of a new name these. Behind a scope, a name may begin with "_" or "-", and so may the scope.
_PUBLISHABLE: Final = re.compile(r"[a-z0-9][a-z0-9._-]*")
_SCOPED: Final = re.compile(r"(?!-\Z)[a-z0-9_-][a-z0-9._-]*")  # paths have "-" alone between a name and its files

# Keys that every JavaScript object has. Clients use names as keys of objects.
_OBJECT_KEYS: Final = frozenset(
    {
        "__defineGetter__",
        "__defineSetter__",
        "__lookupGetter__",
        "__lookupSetter__",
        "__proto__",
        "constructor",
        "hasOwnProperty",
        "isPrototypeOf",
        "propertyIsEnumerable",
        "prototype",
        "toLocaleString",
        "toString",
        "valueOf",
    }
)
_FORBIDDEN: Final = frozenset({"node_modules", "favicon.ico"})
# Modules that Node resolves before it looks for packages.
_NODE_MODULES: Final = frozenset(
    """
    assert async_hooks buffer child_process cluster console constants crypto dgram diagnostics_channel dns domain
    events fs http http2 https inspector module net os path perf_hooks process punycode querystring readline repl
    stream string_decoder sys timers tls trace_events tty url util v8 vm wasi worker_threads zlib
    """.split()  # noqa: SIM905 - forty words read better so
)


def check_new_name(name: str) -> None:
    """
    Check the name of a new package.

    :raises Invalid: the name breaks a rule; the message names the rule
    """
    why = _broken_rule(name)
    if why:
        raise Invalid(f"invalid package name: {quoted(name)} {why}", "name")


def package_key(name: str) -> str:
    """The name, which is its own key. :raises Invalid: no package has such a name"""
    if not is_readable(name):
        raise Invalid(f"{quoted(name)} is not the name of a package", "name")
    return name


def is_readable(name: str) -> bool:
    """Whether a text can be the name of an existing package, by today's rules or by the laxer ones of the past."""
    scope, bare = split_scope(name)
    parts = (scope, bare) if name.startswith("@") else (bare,)
    return (
        len(name) <= LONGEST_NAME
        and all(_READABLE.fullmatch(part) and part.strip(".") for part in parts)
        and name not in _OBJECT_KEYS
        and bare not in _OBJECT_KEYS | _FORBIDDEN
        and name != "-"
    )


def split_scope(name: str) -> tuple[str, str]:
    """The scope, without ``@``, and the bare name; the scope of an unscoped name is empty."""
    if not name.startswith("@"):
        return "", name
    scope, _, bare = name[1:].partition("/")
    return scope, bare


def tarball_name(name: str, version_text: str) -> str:
    """The file name of a version's tarball; it has no scope."""
    return f"{split_scope(name)[1]}-{version_text}{TARBALL}"


def find_tarball_version(name: str, filename: str) -> Version | None:
    """
    The version whose tarball in package ``name`` has this file name; None when no version's tarball can have it.

    Names and versions may both have dashes and digits: only the known name tells where the version begins.
    """
    bare = split_scope(name)[1]
    if not (filename.startswith(f"{bare}-") and filename.endswith(TARBALL)):
        return None
    text = filename[len(bare) + 1 : -len(TARBALL)]
    version = semver.find_version(text)
    return version if version is not None and version.text == text else None


def check_tag(tag: str) -> None:
    """
    Check the name of a dist-tag.

    :raises Invalid: it is no word, reads as a version or a range of versions, or is a key of every JavaScript object
    """
    if not _READABLE.fullmatch(tag) or not tag.strip(".") or len(tag) > LONGEST_TAG:
        raise Invalid(f"invalid tag: {quoted(tag)} is not a word of at most {LONGEST_TAG} URL-safe characters", "tag")
    # Clients accept a star nearly anywhere in a range.
    if "*" in tag or semver.is_range(tag) or semver.find_version(tag) is not None:
        raise Invalid(f"invalid tag: {quoted(tag)} reads as a version or a range of versions", "tag")
    if tag in _OBJECT_KEYS:
        raise Invalid(f"invalid tag: {quoted(tag)} is reserved", "tag")


def is_readable_tag(tag: str) -> bool:
    """Whether a text can be a dist-tag of an upstream, whose rules may be laxer than those of L{check_tag}."""
    return 0 < len(tag) <= LONGEST_TAG and tag.isprintable() and tag not in _OBJECT_KEYS


def quoted_or_nothing(value: object) -> str:
    """A name or version of unknown type for an error message: quoted when it is a text, else ``nothing``."""
    return quoted(value) if isinstance(value, str) else "nothing"


def _broken_rule(name: str) -> str:
    """The rule that a new name breaks, as the end of a sentence; empty when it breaks none."""
    if len(name) > LONGEST_NAME:
        return f"is longer than {LONGEST_NAME} characters"
    scope, bare = split_scope(name)
    if name.startswith("@") and not (scope and bare):
        return "has a scope without a name, or a name without a scope"
    grammar = _SCOPED if scope else _PUBLISHABLE
    if not all(grammar.fullmatch(part) for part in ((scope, bare) if scope else (bare,))):
        start = "no part may begin with '.' or be '-'" if scope else "must begin with a letter or digit"
        return f"may have a-z, 0-9, '.', '_' and '-' only, and {start}"
    if bare in _FORBIDDEN or bare in _OBJECT_KEYS or scope in _OBJECT_KEYS:
        return "is reserved"
    if bare in _NODE_MODULES and not scope:
        return "is the name of a module that comes with Node"
    return ""


def _scope_or_name(package: str) -> str:
    return package.partition("/")[0]


def _stem(pattern: str) -> tuple[str, str]:
    return pattern, f"{pattern}/a" if pattern.startswith("@") and "/" not in pattern else pattern


RIGHTS: Final = FormatRights(
    patterns=lambda package: tuple(dict.fromkeys((package, _scope_or_name(package)))),
    claim=_scope_or_name,
    stem=_stem,
    forms="@acme (a scope) or the whole name of a package",
)
