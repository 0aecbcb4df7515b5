from pkgrepo.auth.tokens.uses import TokenUses
from pkgrepo.errors import StorageFull
from pkgrepo.storage.catalog.people.tokens import get_token
from tests.support.auth import AuthServices


async def test_what_could_not_be_written_is_written_the_next_time(monkeypatch):
    scene = AuthServices()
    _, token = scene.token(scene.user("alice"))
    scene.uses.note(token.id, "192.0.2.1", "pip")
    write = scene.catalog.write

    async def full(command, uses):
        scene.uses.note(token.id, "", "uv")  # somebody goes on meanwhile
        raise StorageFull("catalog")

    monkeypatch.setattr(scene.catalog, "write", full)
    await scene.uses.flush()
    monkeypatch.setattr(scene.catalog, "write", write)
    await scene.uses.flush()
    found = scene.catalog.peek(get_token, token.id)
    assert (found.uses, found.last_used_ip, found.last_used_client) == (2, "192.0.2.1", "uv")


async def test_many_tokens_are_written_in_bounded_batches():
    scene = AuthServices()
    uses = TokenUses(scene.catalog, clock=scene.clock, batch=2)
    user = scene.user("alice")
    tokens = [scene.token(user)[1] for _ in range(5)]
    before = scene.catalog.commits
    for token in tokens:
        uses.note(token.id)
    await uses.flush()
    assert scene.catalog.commits - before == 3
    assert [scene.catalog.peek(get_token, token.id).uses for token in tokens] == [1] * 5


async def test_with_nothing_to_write_nothing_is_written():
    scene = AuthServices()
    await scene.uses.flush()
    assert scene.catalog.commits == 0


async def test_a_long_client_name_is_cut():
    scene = AuthServices()
    _, token = scene.token(scene.user("alice"))
    scene.uses.note(token.id, "", "x" * 5000)
    await scene.uses.flush()
    assert scene.catalog.peek(get_token, token.id).last_used_client == "x" * 200


async def test_what_could_not_be_written_is_kept_also_when_nothing_is_added(monkeypatch):
    scene = AuthServices()
    _, token = scene.token(scene.user("alice"))
    scene.uses.note(token.id)
    write = scene.catalog.write

    async def full(command, uses):
        raise StorageFull("catalog")

    monkeypatch.setattr(scene.catalog, "write", full)
    await scene.uses.flush()
    monkeypatch.setattr(scene.catalog, "write", write)
    await scene.uses.flush()
    assert scene.catalog.peek(get_token, token.id).uses == 1
