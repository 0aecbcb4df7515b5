"""Builds the directories of the settings, for the server and for what checks them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from pkgrepo.config import Config
from pkgrepo.config.sections.people import LdapDirectory
from pkgrepo.errors import Invalid
from pkgrepo.ldap.directory import Directory, Layout, OwnLogin
from pkgrepo.ldap.filters import Filter
from pkgrepo.ldap.servers import Servers, Way, parse_address
from pkgrepo.tls_policy import make_policy


def make_directories(config: Config, reactor: Any) -> list[Directory]:
    """
    The directories in their order; connections are made when they are needed.

    :raises Invalid: the file of a password or of authorities cannot be read
    """
    return [_make(name, each, config, reactor) for name, each in config.auth.ldap.items()]


def make_each_server(config: Config, reactor: Any) -> Iterator[tuple[str, Directory]]:
    """The directories once for each of their servers, with its address. :raises Invalid: see ``make_directories``"""
    for name, given in config.auth.ldap.items():
        for url in (given.url, *given.more_urls):
            yield url, _make(name, replace(given, url=url, more_urls=()), config, reactor)


def _make(name: str, given: LdapDirectory, config: Config, reactor: Any) -> Directory:
    ca_files = [each for each in (config.proxy.ca_file, given.ca_file) if each is not None]
    own = OwnLogin()
    if given.bind_password_file is not None:
        try:
            password = given.bind_password_file.read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise Invalid(f"auth.ldap.{name}.bind_password_file cannot be read: {error}") from None
        if not password:
            raise Invalid(f"auth.ldap.{name}.bind_password_file is empty")
        own = OwnLogin(dn=given.bind_dn, password=password)
    way = Way(
        addresses=[parse_address(each) for each in (given.url, *given.more_urls)],
        start_tls=given.start_tls,
        policy=make_policy(ca_files),
        connect_s=given.connect_timeout_s,
        answer_s=given.timeout_s,
    )
    layout = Layout(
        user_base=given.user_base or given.base_dn,
        group_base=given.group_base or given.base_dn,
        user_filter=Filter(given.user_filter, "username"),
        group_filter=Filter(given.group_filter, "dn", "username") if given.group_filter else None,
        nested_groups=given.nested_groups,
        username_attribute=given.username_attribute,
        name_attribute=given.name_attribute,
        email_attribute=given.email_attribute,
        tells_email=given.link_by_email or not config.auth.links_by_email,
        id_attribute=given.id_attribute,
        group_attribute=given.group_attribute,
        group_names=given.group_names,
        admin_groups=frozenset(given.admin_groups),
    )
    servers = Servers(name, way, connections=given.connections, reactor=reactor)
    return Directory(name, servers, layout, own, auto_create=given.auto_create, link_by_email=given.link_by_email)
