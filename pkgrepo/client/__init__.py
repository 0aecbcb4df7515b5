"""
The command line for a server somewhere else: it talks to the API, with the address and the token of a profile.

A command is a coroutine with the decorator ``remote`` (see ``session``), which gives it a ``Session``: the ``client``
and the ``printer``.
"""
