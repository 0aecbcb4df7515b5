"""
The documents C{maven-metadata.xml}: uploads are read and merged, documents are joined from fragments.

Read ``values`` first, then ``reading`` (bytes in), ``document`` (bytes out), ``indexing`` (fragments), ``commands`` and
``requests``.
"""
