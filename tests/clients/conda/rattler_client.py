"""
Installs conda packages with py-rattler, which runs this file in its own environment.

The argument is a JSON object: ``channel`` (an address), ``specs``, ``prefix`` and ``cache`` (folders). It prints the
names of the files that were installed. An upload has ``form``, ``url``, ``token`` and ``files`` instead.
"""

import asyncio
import json
import os
import sys
import traceback


async def install(channel, specs, prefix, cache):
    from rattler import Gateway, install, solve

    gateway = Gateway(cache_dir=f"{cache}/repodata")
    records = await solve([channel], specs, gateway=gateway, platforms=["linux-64", "noarch"])
    await install(records, prefix, cache_dir=f"{cache}/packages", show_progress=False)
    print(json.dumps(sorted(record.file_name for record in records)))


def upload(form, url, token, files):
    import rattler_build

    key = {"token": token} if form == "artifactory" else {"api_key": token}
    getattr(rattler_build, f"upload_package_to_{form}")(files, url, "any-channel", **key)


def run(arguments):
    """Returns the exit status."""
    try:
        if "form" in arguments:
            upload(**arguments)
        else:
            asyncio.run(install(**arguments))
    except Exception:  # noqa: BLE001 - whatever it is, the test reads it
        traceback.print_exc()
        return 1
    return 0


status = run(json.loads(sys.argv[1]))
sys.stdout.flush()
sys.stderr.flush()
os._exit(status)  # its threads can fail while the interpreter ends
