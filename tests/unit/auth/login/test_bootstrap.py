from pkgrepo.auth.login.bootstrap import ensure_admin
from pkgrepo.storage.catalog.people.users import find_user_by_name, password_hash
from tests.support.auth import AuthServices


def test_the_first_admin_is_made_once_and_never_touched_again():
    scene = AuthServices()
    user = scene.catalog.do(ensure_admin, "root", "hash one", now_ms=1)
    assert user.admin
    assert user.active
    assert scene.catalog.do(ensure_admin, "root", "hash two", now_ms=2) is None
    assert scene.catalog.do(ensure_admin, "other", "hash two", now_ms=2) is None
    assert scene.catalog.peek(password_hash, user.id) == "hash one"
    assert scene.catalog.peek(find_user_by_name, "other") is None


def test_a_server_with_any_user_gets_no_admin_from_its_configuration():
    scene = AuthServices()
    scene.user("alice")
    assert scene.catalog.do(ensure_admin, "root", "hash", now_ms=1) is None
