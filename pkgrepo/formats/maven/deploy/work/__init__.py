"""
The work on deployments, which goes on when clients leave, and after the server was stopped.

==========  ==========================================================================  ==============================
step        what happens                                                                left by a crash
==========  ==========================================================================  ==============================
begin       a row, if the user has room for another deployment (``admission``)          the row; it fails when its
                                                                                        lease has expired
receive     the archive becomes a durable blob, which the deployment names; from now    the archive; another process
            on the deployment does not need its client any more (``bundles``)           goes on (``resuming``)
survey      paths, POMs, signatures, and push rules of every version (``validating``)   the same
store       files stream into blobs, which rows of the deployment name; checksums are   the same; files that are stored
            compared                                                                    are not stored again
publish     one transaction: all releases, and the end of the deployment                everything, or the same
==========  ==========================================================================  ==============================

What waits for its user's decision is published by ``publication``. For the states see
``pkgrepo.storage.catalog.packages.deployments``.
"""
