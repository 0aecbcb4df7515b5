from pkgrepo.storage.catalog.server import settings
from tests.support.catalog import MemoryCatalog


def test_a_value_is_replaced():
    catalog = MemoryCatalog()
    catalog.do(settings.put, "motd", "one")
    catalog.do(settings.put, "motd", "two")
    assert catalog.peek(settings.get, "motd") == "two"
    assert catalog.peek(settings.get, "other") is None


def test_a_secret_is_created_once():
    catalog = MemoryCatalog()
    secret = catalog.do(settings.ensure_secret, "signing")
    assert len(secret) >= 43
    assert catalog.do(settings.ensure_secret, "signing") == secret
    assert catalog.do(settings.ensure_secret, "other") != secret


def test_the_server_keeps_its_id():
    catalog = MemoryCatalog()
    assert catalog.peek(settings.server_uid) is None
    uid = catalog.do(settings.ensure_server_uid)
    assert catalog.do(settings.ensure_server_uid) == uid == catalog.peek(settings.server_uid)
