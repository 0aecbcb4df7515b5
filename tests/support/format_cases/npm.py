"""The npm format."""

from tests.support.npm_packages import make_publish

from .case import Case, Send


async def publish(send: Send) -> None:
    for version, tag in (("1.0.0", "latest"), ("1.1.0", "latest"), ("2.0.0-rc.1", "next")):
        await send("PUT", "/demo", make_publish("demo", version, tag=tag), kind="application/json")


NPM = Case(
    publish=publish,
    version="1.1.0",
    documents=("/demo",),
    shown=b'"1.1.0":',
    files=("/demo/-/demo-1.1.0.tgz",),
    older="/demo/-/demo-1.0.0.tgz",
    beside=("/%64emo/-/demo-1.1.0.tgz",),
)
