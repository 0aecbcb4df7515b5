"""``npm access`` and what it asks about: who may see a package, and who maintains it."""

from __future__ import annotations

from pkgrepo.errors import Forbidden
from pkgrepo.gateway.content import is_private
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer, json_answer
from pkgrepo.http.request import Request
from pkgrepo.model import Repository

from .bodies import read_object
from .reading import Reading

NO_STORE = ((b"Cache-Control", b"no-store"),)


class Sharing:
    """Tells of rights; they are granted for repositories, and changed through the management API."""

    def __init__(self, services: Services, repository: Repository, reading: Reading) -> None:
        self._services = services
        self._repository = repository
        self._reading = reading

    def tell(self, name: str, what: str) -> Answer:
        """
        Whether anybody may see a package, which is so when they may see its repository, or who maintains it.

        ``what`` is the last word of the address: ``visibility`` for npm, ``access`` for pnpm 12, ``collaborators``.

        :raises NotFound: no such package
        """
        package, public = self._reading.package(name), not is_private(self._repository)
        told: dict[str, object] = {
            "visibility": {"public": public},
            "access": {"access": "public" if public else "restricted", "publish_requires_tfa": False},
            "collaborators": {each["name"]: "write" for each in package.meta.get("maintainers", ())},
        }
        return json_answer(told[what], headers=NO_STORE)

    async def set_access(self, request: Request, name: str) -> Answer:
        """
        Agree to what is so already.

        :raises Forbidden: a package cannot be seen by others than its repository
        """
        self._reading.package(name)
        wanted = (await read_object(request)).get("access")
        present = "restricted" if is_private(self._repository) else "public"
        if wanted in ("public", "restricted", "private") and (wanted == "public") != (present == "public"):
            raise Forbidden(
                f"packages in {self._repository.path} are {present}, as their repository is; its visibility decides"
            )
        return json_answer({"ok": True}, headers=NO_STORE)
