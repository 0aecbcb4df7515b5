"""
What anaconda-client and rattler-build's form of the same name ask below a channel. Any owner is the channel itself.

====================================================  ================================================================
request                                               answer
====================================================  ================================================================
``GET user``, ``GET user/<owner>``                    who the caller is; an owner always exists
``GET package/<owner>/<name>``                        a package, its versions and files; 404 without any
``GET release/<owner>/<name>/<version>``              a version and its files
``GET dist/<owner>/<name>/<version>/<subdir>/<file>`` a file; ``download/...`` is its bytes
``POST`` or ``PATCH`` of a package or release         nothing is changed: packages say themselves what they are
``DELETE`` of a package, release or dist              it is removed
``POST stage/...``, ``POST commit/...``               an upload, see ``uploads``; between them the file is sent to
                                                      ``/api/conda/uploads/<id>`` of the server
``POST authentications``, ``DELETE authentications``  an access token for the channel; the caller's is revoked
====================================================  ================================================================
"""
