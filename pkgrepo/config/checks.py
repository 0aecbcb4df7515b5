"""What single settings do not show: those that contradict each other, and what is missing beside others."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from pkgrepo.auth.login.passwords import check_password
from pkgrepo.config.sections.bootstrap import Admin, BootstrapToken
from pkgrepo.config.sections.people import LdapDirectory
from pkgrepo.config.sections.server import Tls
from pkgrepo.config.settings import Config
from pkgrepo.errors import Invalid
from pkgrepo.outbound.addresses import is_loopback
from pkgrepo.outbound.urls import parse_url

NO_PROXY_HEADER: Final = frozenset({"authorization", "cookie", "host", "user-agent", "x-api-key", "npm-otp", "otp"})


def check(config: Config) -> tuple[Config, list[str]]:
    """Replace token files by the hashes of their content. Returns the configuration and the contradictions found."""
    problems = [
        *_check_tls(config.tls),
        *_check_admin(config.bootstrap.admin, config.auth.password_min),
        *_check_issuers(config),
        *_check_exports(config),
        *_check_directories(config),
    ]
    if not config.server.listen:
        problems.append("server.listen: must name at least one address")
    if config.database.replica_url and config.database_path:
        problems.append("database.replica_url: has a meaning with PostgreSQL only, which database.url does not name")
    if config.backup.destination.startswith("s3://") and not config.backup.endpoint:
        problems.append("backup.endpoint: is missing, since backup.destination is a bucket")
    if config.auth.proxy_header and not config.server.trusted_proxies:
        problems.append("auth.proxy_header: is read of server.trusted_proxies only, which names none")
    if config.auth.proxy_header.lower() in NO_PROXY_HEADER:
        problems.append("auth.proxy_header: clients send this field themselves")
    for name in ("storages", "repositories", "tokens"):
        problems += _check_twins(f"bootstrap.{name}", [_identity(each) for each in getattr(config.bootstrap, name)])
    tokens = []
    for index, token in enumerate(config.bootstrap.tokens):
        try:
            tokens.append(_with_hash(token))
        except (OSError, ValueError) as error:
            problems.append(f"bootstrap.tokens[{index}]: {error}")
    return replace(config, bootstrap=replace(config.bootstrap, tokens=tuple(tokens))), problems


def _check_tls(tls: Tls) -> Iterator[str]:
    if tls.cert and not tls.key:
        yield "tls.key: is missing, since tls.cert is set"
    if tls.key and not tls.cert:
        yield "tls.cert: is missing, since tls.key is set"


def _check_exports(config: Config) -> Iterator[str]:
    for name, twin in config.twins.items():
        if not twin.target:
            yield f"twins.{name}.target: is missing"
        if twin.target.startswith("s3://") and not twin.endpoint:
            yield f"twins.{name}.endpoint: is missing, since twins.{name}.target is a bucket"
    yield from _check_twins("twins", [each.target.rstrip("/") for each in config.twins.values() if each.target])


def _check_issuers(config: Config) -> Iterator[str]:
    for name, each in config.auth.issuers.items():
        if not each.audience and not config.server.public_url:
            yield f"auth.issuers.{name}.audience: is missing, since server.public_url is not set"
    for name, provider in config.auth.oidc.items():
        if "openid" not in provider.scopes:
            yield f"auth.oidc.{name}.scopes: must have openid among them"
    for section, urls in (
        ("issuers", {name: each.issuer for name, each in config.auth.issuers.items()}),
        ("oidc", {name: each.issuer for name, each in config.auth.oidc.items()}),
    ):
        for name, url in urls.items():
            place = f"auth.{section}.{name}.issuer"
            try:
                target = parse_url(url)
            except ValueError as error:
                yield f"{place}: must be an address: {error}"
                continue
            if target.scheme == "http" and not is_loopback(target.host):
                yield f"{place}: must begin with https://, since it is not on this machine"
            if next(each for each in urls if urls[each] == url) != name:
                yield f"{place}: is there more than once"


def _check_directories(config: Config) -> Iterator[str]:
    if not config.auth.ldap:
        return
    from pkgrepo.ldap.servers import parse_address  # noqa: PLC0415 - loads a library that few servers need

    for name, each in config.auth.ldap.items():
        place = f"auth.ldap.{name}"
        if bool(each.bind_dn) != (each.bind_password_file is not None):
            yield f"{place}.bind_password_file: goes with bind_dn, and neither without the other"
        for key, url in (("url", each.url), *(("more_urls", url) for url in each.more_urls)):
            try:
                address = parse_address(url)
            except ValueError as error:
                yield f"{place}.{key}: must be an address: {error}"
                continue
            if not address.is_tls and not each.start_tls and not is_loopback(address.host):
                yield f"{place}.{key}: must begin with ldaps://, or have start_tls, since it is not on this machine"
        yield from _check_filters(place, each)


def _check_filters(place: str, directory: LdapDirectory) -> Iterator[str]:
    from pkgrepo.ldap.filters import Filter  # noqa: PLC0415 - as above

    for key, text, places in (
        ("user_filter", directory.user_filter, ("username",)),
        ("group_filter", directory.group_filter, ("dn", "username")),
    ):
        try:
            if text or key == "user_filter":
                Filter(text, *places)
        except Invalid as error:
            yield f"{place}.{key}: {error}"


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
    return replace(token, hash=hashlib.sha256(text.encode()).hexdigest(), file=None)
