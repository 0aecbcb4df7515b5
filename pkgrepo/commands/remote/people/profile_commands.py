"""``pkgrepo profile``: which servers are known, and which one is used."""

from __future__ import annotations

import os

import click

from pkgrepo.commands.remote.printer import Column, Printer
from pkgrepo.commands.remote.profiles import find_profiles_file, read_profiles, write_profiles
from pkgrepo.commands.remote.session import checked, complete_profiles


@click.group()
def profile() -> None:
    """Profiles: the servers that you have logged in to."""


@profile.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
def list_profiles(*, as_json: bool) -> None:
    """List the profiles; the current one has a star."""
    found = checked(lambda: read_profiles(find_profiles_file(os.environ)))
    records = [
        {"name": name, "url": each.url, "username": each.username, "current": name == found.current}
        for name, each in sorted(found.profiles.items())
    ]
    columns = (
        Column("", lambda each: "*" if each["current"] else " "),
        Column("PROFILE", "name"),
        Column("SERVER", "url"),
        Column("USER", "username"),
    )
    Printer(as_json=as_json).table(columns, records, 'there are no profiles; "pkgrepo login URL" makes one')


@profile.command("use")
@click.argument("name", shell_complete=complete_profiles)
def use_profile(name: str) -> None:
    """Make a profile the current one."""
    path = find_profiles_file(os.environ)
    found = checked(lambda: read_profiles(path))
    chosen = checked(lambda: found.get(name))
    found.current = name
    checked(lambda: write_profiles(path, found))
    Printer(as_json=False).line(f"{name} is used now: {chosen.url}")
