"""The journal of imports, on every engine."""

from pkgrepo.storage.catalog.server import imports
from pkgrepo.storage.catalog.server.imports import LeftOut
from tests.support.catalogs import add_repository


async def test_a_journal_knows_the_packages_that_need_no_other_look(catalog):
    repository = await catalog.write(add_repository)
    journal = await catalog.write(imports.ensure_import, repository.id, "python", "https://old.example/simple")
    assert await catalog.write(imports.ensure_import, repository.id, "python", "https://old.example/simple") == journal
    assert await catalog.write(imports.ensure_import, repository.id, "npm", "https://old.example/simple") != journal
    left = [LeftOut("demo", "b.doc", "no package"), LeftOut("demo", "a.doc", "no package")]
    await catalog.write(imports.note_package, journal, "demo", "one", 3, left, 1)
    assert await catalog.look(imports.find_fingerprint, journal, "demo") == ("one", 3)
    assert await catalog.look(imports.left_out_of, journal, "demo") == left[::-1]
    await catalog.write(imports.note_package, journal, "demo", None, 3, left[:1], 2)
    assert await catalog.look(imports.find_fingerprint, journal, "demo") is None
    assert await catalog.look(imports.left_out_of, journal, "demo") == left[:1]
    assert await catalog.look(imports.left_out_of, journal, "other") == []
