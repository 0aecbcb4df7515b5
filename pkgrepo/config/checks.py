"""Validation of settings that depend on each other."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from attrs import evolve

from pkgrepo.auth.login.passwords import check_password
from pkgrepo.errors import Invalid

from .settings import Admin, BootstrapToken, Config, Tls


def check(config: Config) -> tuple[Config, list[str]]:
    """Replace token files by the hashes of their content. Returns the configuration and the contradictions found."""
    problems = [*_check_tls(config.tls), *_check_admin(config.bootstrap.admin, config.auth.password_min)]
    if not config.server.listen:
        problems.append("server.listen: must name at least one address")
    if config.database.replica_url and config.database_path:
        problems.append("database.replica_url: has a meaning with PostgreSQL only, which database.url does not name")
    for name in ("storages", "repositories", "tokens"):
        problems += _check_twins(f"bootstrap.{name}", [_identity(each) for each in getattr(config.bootstrap, name)])
    tokens = []
    for index, token in enumerate(config.bootstrap.tokens):
        try:
            tokens.append(_with_hash(token))
        except (OSError, ValueError) as error:
            problems.append(f"bootstrap.tokens[{index}]: {error}")
    return evolve(config, bootstrap=evolve(config.bootstrap, tokens=tuple(tokens))), problems


def _check_tls(tls: Tls) -> Iterator[str]:
    if tls.cert and not tls.key:
        yield "tls.key: is missing, since tls.cert is set"
    if tls.key and not tls.cert:
        yield "tls.cert: is missing, since tls.key is set"


def _check_admin(admin: Admin, password_min: int) -> Iterator[str]:
    if admin.password and admin.password_hash:
        yield "bootstrap.admin: give password or password_hash, not both"
    if admin.password_hash and not admin.password_hash.reveal().startswith("$argon2id$"):
        yield "bootstrap.admin.password_hash: must begin with $argon2id$"
    if admin.password:
        try:
            check_password(admin.password.reveal(), username=admin.user, min_length=password_min)
        except Invalid as error:
            yield f"bootstrap.admin.password: {error}"


def _identity(item: object) -> str:
    """The identifying name of a list entry."""
    parts = [getattr(item, name) for name in ("user", "storage", "name") if hasattr(item, name)]
    return "/".join(part.lower() for part in parts)


def _check_twins(place: str, names: Sequence[str]) -> Iterator[str]:
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"{place}: {name} is there more than once"


def _with_hash(token: BootstrapToken) -> BootstrapToken:
    if (token.hash is None) == (token.file is None):
        raise ValueError("give either hash or file")
    if token.file is None:
        return token
    text = token.file.read_text(encoding="utf-8").strip()
    if not text.startswith("pkgr_"):
        raise ValueError(f"{token.file} holds no token (they begin with pkgr_)")
    return evolve(token, hash=hashlib.sha256(text.encode()).hexdigest(), file=None)
