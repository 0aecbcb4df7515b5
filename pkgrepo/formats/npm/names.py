"""
The grammar of package names, dist-tags and tarball names.

A name is its own key: old packages may have upper case in theirs, and two may differ in nothing else.
"""

from __future__ import annotations

import re
from typing import Final

from pkgrepo.errors import Invalid
from pkgrepo.untrusted.quoting import quoted

from . import semver

LONGEST_NAME: Final = 214  # characters, scope included
LONGEST_TAG: Final = 128  # characters; ours, npm has no limit
DEFAULT_TAG: Final = "latest"
TARBALL: Final = ".tgz"
BUNDLE: Final = ".sigstore"

# What encodeURIComponent leaves alone, which is all that a part of a name may hold ...
_READABLE: Final = re.compile(r"[A-Za-z0-9._!~*'()-]+")
# ... and what of it new names may.
_PUBLISHABLE: Final = re.compile(r"[a-z0-9][a-z0-9._-]*")

# Keys that every JavaScript object has: clients look names up in objects.
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
    Let a name pass that a package may be published under.

    :raises Invalid: it breaks a rule, which the sentence names
    """
    why = _why_not_new(name)
    if why:
        raise Invalid(f"invalid package name: {quoted(name)} {why}", "name")


def is_readable(name: str) -> bool:
    """Whether a package can be called so: today's names, and those from before the rules were tightened."""
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
    """Scope without ``@`` and bare name; the scope of an unscoped name is empty."""
    if not name.startswith("@"):
        return "", name
    scope, _, bare = name[1:].partition("/")
    return scope, bare


def tarball_name(name: str, version_text: str) -> str:
    """The file name of a version's tarball, which has no scope in it."""
    return f"{split_scope(name)[1]}-{version_text}{TARBALL}"


def find_tarball_version(name: str, filename: str) -> semver.Version | None:
    """
    The version whose tarball of package ``name`` is called so, or None when no version's is.

    Both parts may have dashes and digits in them: only the name, which is known, tells where the version begins.
    """
    bare = split_scope(name)[1]
    if not (filename.startswith(f"{bare}-") and filename.endswith(TARBALL)):
        return None
    text = filename[len(bare) + 1 : -len(TARBALL)]
    version = semver.find_version(text)
    return version if version is not None and version.text == text else None


def check_tag(tag: str) -> None:
    """
    Let a dist-tag pass.

    :raises Invalid: it is no word, reads as a range of versions, or means something to JavaScript
    """
    if not _READABLE.fullmatch(tag) or not tag.strip(".") or len(tag) > LONGEST_TAG:
        raise Invalid(f"invalid tag: {quoted(tag)} is not a word of at most {LONGEST_TAG} URL-safe characters", "tag")
    # Clients drop a star from nearly anywhere in a range.
    if "*" in tag or semver.is_range(tag) or semver.find_version(tag) is not None:
        raise Invalid(f"invalid tag: {quoted(tag)} reads as a version or a range of versions", "tag")
    if tag in _OBJECT_KEYS:
        raise Invalid(f"invalid tag: {quoted(tag)} is reserved", "tag")


def _why_not_new(name: str) -> str:
    if len(name) > LONGEST_NAME:
        return f"is longer than {LONGEST_NAME} characters"
    scope, bare = split_scope(name)
    if name.startswith("@") and not (scope and bare):
        return "has a scope without a name, or a name without a scope"
    for part in (scope, bare) if name.startswith("@") else (bare,):
        if not _PUBLISHABLE.fullmatch(part):
            return "may have a-z, 0-9, '.', '_' and '-' only, and must begin with a letter or digit"
    if bare in _FORBIDDEN or bare in _OBJECT_KEYS or scope in _OBJECT_KEYS:
        return "is reserved"
    if bare in _NODE_MODULES and not scope:
        return "is the name of a module that comes with Node"
    return ""
