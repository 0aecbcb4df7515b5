"""
The toy format: a whole package format in one folder, as an example, and as the proof that no more is needed.

``names`` are names, versions and paths; ``index`` is the document of a package, of this server and of upstreams;
``routes`` are the requests of clients; ``imported`` is what imports, lock files and mirrors take; ``format`` says all
of that to the server.

==========================================  ===========================================================================
request                                     response
==========================================  ===========================================================================
``GET R/``                                  a line for people
``PUT R/<name>/<version>/<file>``           the file of a version is published
``GET R/<name>/<version>/<file>``           its bytes
``GET R/<name>/index.json``                 ``{"name": ..., "files": [{"version", "file", "sha256", "size",
                                            "published"}, ...]}``
==========================================  ===========================================================================
"""
