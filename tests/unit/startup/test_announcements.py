from __future__ import annotations

import io
import os
import stat
import sys

import pytest
from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress

from pkgrepo.startup.announcements import announce_addresses, announce_password, describe_address, find_console


@pytest.mark.parametrize(
    ("address", "tls", "shown"),
    [
        (IPv4Address("TCP", "127.0.0.1", 8081), False, "http://127.0.0.1:8081/"),
        (IPv4Address("TCP", "0.0.0.0", 443), True, "https://127.0.0.1:443/"),
        (IPv6Address("TCP", "::", 80), False, "http://[::1]:80/"),
        (IPv6Address("TCP", "fe80::1%eth0", 80), False, "http://[fe80::1]:80/"),
        (UNIXAddress(b"/run/pkgrepo.sock"), False, "unix:/run/pkgrepo.sock"),
    ],
)
def test_an_address_is_shown_as_one_would_type_it(address, tls, shown):
    assert describe_address(address, tls=tls) == shown


def test_the_password_is_shown_on_the_console_and_left_nowhere(tmp_path):
    console = io.StringIO()
    announce_password("admin", "s3cret-s3cret", console=console, folder=tmp_path)
    assert "s3cret-s3cret" in console.getvalue()
    assert list(tmp_path.iterdir()) == []


def test_without_a_console_the_password_waits_in_a_file_of_its_owner(tmp_path):
    kept = tmp_path / "initial-admin-password"
    kept.write_text("old")
    kept.chmod(0o644)
    announce_password("admin", "s3cret", console=None, folder=tmp_path)
    assert kept.read_text() == "admin s3cret\n"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_nothing_is_said_of_addresses_when_nobody_reads():
    announce_addresses(["http://127.0.0.1:1/"], admin="admin", console=None)
    console = io.StringIO()
    announce_addresses(["http://127.0.0.1:1/"], admin="admin", console=console)
    assert console.getvalue() == "pkgrepo answers at http://127.0.0.1:1/ (log in as admin)\n"


def test_the_null_device_is_no_console(monkeypatch, tmp_path):
    with open(os.devnull, "w") as null, open(tmp_path / "out", "w") as real:
        monkeypatch.setattr(sys, "__stdout__", null)
        assert find_console() is None
        monkeypatch.setattr(sys, "__stdout__", real)
        assert find_console() is real
    assert find_console() is None  # closed by now
