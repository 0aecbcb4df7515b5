"""The Ruby gem format."""

from tests.support.gems import make_gem

from .case import Case, Send


async def publish(send: Send) -> None:
    for version in ("1.0.0", "1.1.0"):
        await send("POST", "/api/v1/gems", make_gem("demo", version), kind="application/octet-stream")


RUBY = Case(
    publish=publish,
    version="1.1.0",
    documents=("/info/demo",),
    shown=b"1.1.0 ",
    files=("/gems/demo-1.1.0.gem",),
    older="/gems/demo-1.0.0.gem",
    beside=("/quick/Marshal.4.8/demo-1.1.0.gemspec.rz",),
)
