"""
A publish document in.

``scanner`` separates the tarball from the JSON while the body arrives; ``envelope`` reads the JSON, ``tarball`` the
archive; ``manifest`` makes what is stored of both; ``requests`` publishes it.
"""
