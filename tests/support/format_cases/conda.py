"""The conda format."""

from tests.support.conda_packages import make_conda

from .case import Case, Send


async def publish(send: Send) -> None:
    for version in ("1.0", "1.1"):
        await send("PUT", f"/noarch/demo-{version}-py_0.conda", make_conda("demo", version))


CONDA = Case(
    publish=publish,
    version="1.1",
    documents=("/noarch/repodata.json",),
    shown=b"demo-1.1-",
    files=("/noarch/demo-1.1-py_0.conda",),
    older="/noarch/demo-1.0-py_0.conda",
)
