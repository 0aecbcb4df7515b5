"""The Python format."""

from tests.support.http_client import BOUNDARY, form_body
from tests.support.python_packages import make_wheel
from tests.support.upload_forms import twine

from .case import Case, Send


async def publish(send: Send) -> None:
    for version in ("1.0", "1.1"):
        form = twine("demo", version, *make_wheel("demo", version))
        await send("POST", "/", form_body(form), kind=f"multipart/form-data; boundary={BOUNDARY}")


PYTHON = Case(
    publish=publish,
    version="1.1",
    documents=("/simple/demo/",),
    shown=b"demo-1.1-",
    files=("/demo/1.1/demo-1.1-py3-none-any.whl",),
    older="/demo/1.0/demo-1.0-py3-none-any.whl",
    beside=(
        "/Demo/1.1/demo-1.1-py3-none-any.whl",
        "/packages/demo/1.1/demo-1.1-py3-none-any.whl",
        "/demo/1.1/demo-1.1-py3-none-any.whl.metadata",
    ),
    upstream="/simple/",
)
