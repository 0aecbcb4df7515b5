"""
Static twins: a repository as plain files, which any web server serves to unmodified clients.

The documents and files are fetched from a server by the paths of the clients, with the rights of the caller, so that a
twin has exactly what that caller would get. ``contents`` says what the twin of each format consists of, ``folder`` and
``bucket`` keep the files and their list (``lists``), ``commands`` export and verify.
"""
