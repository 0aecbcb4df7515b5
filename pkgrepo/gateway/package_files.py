"""Answers reads of the files of packages."""

from __future__ import annotations

from pkgrepo.http.answers import Answer
from pkgrepo.http.request import Request
from pkgrepo.interfaces import Reader
from pkgrepo.model import Identity, Repository
from pkgrepo.storage.catalog.packages import files

from .content import sends_all
from .services import Services


async def answer_file(
    services: Services, request: Request, identity: Identity, repository: Repository, package: str, path: str
) -> Answer | None:
    """
    The file of a package (a key) at a path of a repository, or None. The answer is cached until the file is another.

    An answer with the whole file is a download by ``identity``, unless the file is a companion of another.

    :raises BlobMissing: the storage has lost the bytes
    """
    generation = services.catalog.generation()
    file = await services.catalog.look(files.find_file, repository.id, path)
    if file is None:
        return None
    answer = await services.files.answer(repository, file)
    item = file if file.role is None else None

    def fresh(r: Reader) -> bool:
        now = files.find_file(r, repository.id, path)
        return now is not None and (now.sha256, now.locator) == (file.sha256, file.locator)

    services.answer_cache.put_answer(
        request, repository, answer, package=package, fresh=fresh, generation=generation, item=item
    )
    if item is not None and sends_all(request, answer):
        services.downloads.record(item, identity)
    return answer
