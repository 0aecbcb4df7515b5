"""The toy format of the tests."""

from .case import Case, Send


async def publish(send: Send) -> None:
    for version in ("1.0.0", "1.1.0"):
        await send("PUT", f"/demo/{version}/demo.txt", b"toy " + version.encode())


TOY = Case(
    publish=publish,
    version="1.1.0",
    documents=("/demo/index.json",),
    shown=b'"1.1.0"',
    files=("/demo/1.1.0/demo.txt",),
    older="/demo/1.0.0/demo.txt",
    beside=("/%64emo/1.1.0/demo.txt",),
)
