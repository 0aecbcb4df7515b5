"""
Builds the configuration from all sources, or reports every problem in them.

The sources are a TOML file, the environment, and overrides by the caller. Each becomes a mapping from dotted names to
raw values, of which the later ones win.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from attrs import define, field, frozen
from msgspec.structs import replace

from pkgrepo.auth.login.passwords import check_password
from pkgrepo.config.keys import Key, Section, iter_keys, keys_of, sections_of, unknown
from pkgrepo.config.kinds import SettingError
from pkgrepo.config.sections.bootstrap import Admin, BootstrapToken
from pkgrepo.config.sections.people import LdapDirectory
from pkgrepo.config.sections.server import Tls
from pkgrepo.config.settings import Config
from pkgrepo.errors import Invalid
from pkgrepo.outbound.addresses import is_loopback
from pkgrepo.outbound.urls import parse_url

PREFIX = "PKGREPO_"
SHORTCUTS = {
    "PKGREPO_ADMIN_USER": "bootstrap.admin.user",
    "PKGREPO_ADMIN_PASSWORD": "bootstrap.admin.password",
    "PKGREPO_ADMIN_PASSWORD_FILE": "bootstrap.admin.password_file",
}
# Read by the scripts in bin/ and by the command line, before the configuration is read.
NOT_SETTINGS = re.compile(
    r"PKGREPO_(CONFIG|PYTHON|VENV|REQUIRE_CLIENTS|BENCH_\w+|DEPLOY_(TOKEN|USER|PASSWORD)"
    r"|PROFILES?|URL|TOKEN(_FILE)?|CA_FILE)"
)
# Kubernetes sets these in every container if there is a service named pkgrepo.
FROM_KUBERNETES = re.compile(r"PKGREPO_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\w+)?)")
NO_PROXY_HEADER = frozenset({"authorization", "cookie", "host", "user-agent", "x-api-key", "npm-otp", "otp"})
KEYS = dict(iter_keys(Config))


@frozen
class RawValue:
    """A value as written, its origin, and the base folder of relative paths."""

    value: object
    origin: str
    folder: Path


@define
class Source:
    """The raw values of one source, and the problems found in it."""

    known: Mapping[str, Key]
    values: dict[str, RawValue] = field(factory=dict)
    problems: list[str] = field(factory=list)

    def take(self, name: str, raw: RawValue, *, called: str | None = None, any_file: bool = False) -> bool:
        """
        Record the value of the setting ``name``; returns False if there is no such setting.

        ``<key>_file`` names a file that holds the value: for every key with ``any_file``, otherwise only for secrets.
        """
        target = name
        if name not in self.known:
            target = name.removesuffix("_file")
            if target == name or target not in self.known or not (any_file or self.known[target].kind.secret):
                return False
            content = self.content(called or name, raw)
            if content is None:
                return True
            raw = content
        if target in self.values:
            self.problems.append(f"{target}: is said twice, by {self.values[target].origin} and by {raw.origin}")
        self.values[target] = raw
        return True

    def content(self, called: str, raw: RawValue) -> RawValue | None:
        """The content of the file that a value names; None, with a problem, if it cannot be read."""
        path = raw.folder / str(raw.value)
        try:
            value = path.read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            self.problems.append(f"{called}: cannot read {path}: {_why(error)}")
            return None
        return RawValue(value, f"{raw.origin} ({path})", raw.folder)


def from_file(path: Path, known: Mapping[str, Key]) -> Source:
    """Read a TOML file; relative paths are resolved against its folder."""
    found = Source(known)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        found.problems.append(f"{path}: {_why(error)}")
        return found
    folder = path.absolute().parent
    for name, value in _flat(content, known):
        if not found.take(name, RawValue(value, str(path), folder)):
            found.problems.append(f"{path}: {name} {unknown(name, known)}")
    return found


def from_environment(environ: Mapping[str, str], known: Mapping[str, Key], folder: Path) -> Source:
    """Read variables such as ``PKGREPO_SERVER__LISTEN``, and the short names for the first admin."""
    found = Source(known)
    for variable in sorted(environ):
        if not variable.startswith(PREFIX) or NOT_SETTINGS.fullmatch(variable) or FROM_KUBERNETES.fullmatch(variable):
            continue
        name = SHORTCUTS.get(variable) or variable.removeprefix(PREFIX).lower().replace("__", ".")
        raw = RawValue(environ[variable], f"environment {variable}", folder)
        shaped = variable in SHORTCUTS or "__" in variable
        if not shaped or not (
            found.take(name, raw, called=variable, any_file=True) or _take_inner(found, name, raw, variable)
        ):
            spelled = {_variable(each): None for each in known} | dict.fromkeys(SHORTCUTS)
            for table, inner in ((each, keys_of(key.kind.item)) for each, key in known.items() if key.kind.named):
                if name.startswith(f"{table}.") and name.count(".") > table.count(".") + 1:
                    own = name.split(".")[table.count(".") + 1]
                    spelled |= {_variable(f"{table}.{own}.{each}"): None for each in inner}
            found.problems.append(f"environment: {variable} {unknown(variable, spelled)}")
    return found


class _Inner(dict[str, Any]):
    """Keys of tables with names, each of which a variable has set; those of an earlier source stay."""

    def over(self, before: object) -> dict[str, Any]:
        """What they make of the value of an earlier source."""
        tables = dict(before) if isinstance(before, Mapping) else {}
        for name, keys in self.items():
            own = tables.get(name)
            tables[name] = {**own, **keys} if isinstance(own, Mapping) else keys
        return tables


def _take_inner(found: Source, name: str, raw: RawValue, variable: str) -> bool:
    """Record ``auth.oidc.NAME.KEY``; False if that is no key. A line in NAME is a dash, which variables cannot have."""
    table, _, rest = name.rpartition(".")
    table, _, own = table.rpartition(".")
    if table not in found.known or not found.known[table].kind.named:
        return False
    keys, key = keys_of(found.known[table].kind.item), rest
    if key not in keys:
        key = rest.removesuffix("_file")
        content = found.content(variable, raw) if key in keys and key != rest else None
        if content is None:
            return key in keys  # then its problem is recorded
        raw = content
    value = raw.value if keys[key].kind.bare or not isinstance(raw.value, str) else as_literal(raw.value)
    before = found.values.get(table)
    if before is None:
        before = found.values[table] = RawValue(_Inner(), f"environment {_variable(table)}__*", raw.folder)
    if not isinstance(before.value, _Inner):
        found.problems.append(f"{name}: is said twice, by {before.origin} and by {raw.origin}")
        return True
    inner = before.value.setdefault(own.replace("_", "-"), {})
    if key in inner:
        found.problems.append(f"{name}: is said twice, by {variable} and another variable")
    inner[key] = value
    return True


def _variable(name: str) -> str:
    return PREFIX + name.upper().replace("-", "_").replace(".", "__")


def from_caller(overrides: Mapping[str, object], known: Mapping[str, Key], folder: Path, origin: str) -> Source:
    """Read overrides from the command line or an embedding program, by dotted names."""
    found = Source(known)
    for name, value in overrides.items():
        if not found.take(name, RawValue(value, origin, folder)):
            found.problems.append(f"{origin}: {name} {unknown(name, known)}")
    return found


def as_literal(text: str) -> object:
    """Parse a TOML literal, or an object or a list in JSON; any other text is returned unchanged."""
    if "\n" not in text:
        with suppress(tomllib.TOMLDecodeError):
            return tomllib.loads(f"value = {text}")["value"]
    if text.lstrip()[:1] in ("{", "["):
        with suppress(msgspec.DecodeError):
            return msgspec.json.decode(text)
    return text


def _flat(content: Mapping[str, object], known: Mapping[str, Key], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Every value with its dotted name; a table that is not the value of a key is flattened."""
    for name, value in content.items():
        dotted = prefix + name
        if isinstance(value, Mapping) and dotted not in known:
            if value or not any(each.startswith(dotted + ".") for each in known):
                yield from _flat(value, known, dotted + ".") if value else iter([(dotted, value)])
        else:
            yield dotted, value


def _why(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


class ConfigError(Exception):
    """The configuration is invalid; ``problems`` are sentences that begin with the key or its place."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def read_config(
    file: Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
    origin: str = "command line",
) -> Config:
    """
    Read the configuration from a TOML file, the environment and ``overrides``; later sources win.

    ``overrides`` maps dotted names such as ``data.dir`` to values, or to texts in the form of environment variables;
    ``origin`` is their name in messages. Without ``environ`` no variable is read. Relative paths in ``file`` are
    resolved against its folder, all others against the working directory.

    :raises ConfigError: with every problem at once
    """
    here = Path.cwd()
    sources = [
        from_file(file, KEYS) if file else Source(KEYS),
        from_environment(environ or {}, KEYS, here),
        from_caller(overrides or {}, KEYS, here, origin),
    ]
    raw: dict[str, RawValue] = {}
    for source in sources:
        raw |= {name: _joined(raw.get(name), each) for name, each in source.values.items()}
    problems = [problem for source in sources for problem in source.problems]
    config: Config | None = _build(Config, "", raw, problems)
    if config is not None:
        config, contradictions = check(config)
        problems += contradictions
    if problems or config is None:
        raise ConfigError(tuple(problems))
    return config


def _joined(before: RawValue | None, later: RawValue) -> RawValue:
    if not isinstance(later.value, _Inner):
        return later
    # relative paths in the table are mostly those of the source that had it first
    folder = later.folder if before is None else before.folder
    return RawValue(later.value.over(None if before is None else before.value), later.origin, folder)


def _build(owner: type[Section], prefix: str, raw: Mapping[str, RawValue], problems: list[str]) -> Any:
    """Build a section from the values of its keys; None if a value is invalid."""
    values: dict[str, object] = {}
    before = len(problems)
    for name, key in keys_of(owner).items():
        dotted = prefix + name
        if dotted not in raw:
            continue
        value, origin, folder = raw[dotted].value, raw[dotted].origin, raw[dotted].folder
        if isinstance(value, str) and not key.kind.bare:
            value = as_literal(value)
        try:
            values[key.attribute] = key.kind.read(value, folder)
        except SettingError as problem:
            for rest, sentence in problem.inner or (("", problem.sentence),):
                how = "" if value is not raw[dotted].value or rest else _spelling(dotted, key)
                problems.append(f"{dotted}{rest}: {sentence}{how} (set by {origin})")
    for name, inner in sections_of(owner).items():
        values[name] = _build(inner, f"{prefix}{name}.", raw, problems)
    if len(problems) > before:
        return None
    if owner is Config:
        values["origins"] = {name: each.origin for name, each in raw.items()}
    return owner(**values)


def _spelling(name: str, key: Key) -> str:
    """How a text that is no literal can be written, of keys whose values are tables; empty for other keys."""
    if key.kind.bare or key.kind.item is None:
        return ""
    return f", in JSON or TOML{f', or each key in {_variable(name)}__NAME__KEY' if key.kind.named else ''}"


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
