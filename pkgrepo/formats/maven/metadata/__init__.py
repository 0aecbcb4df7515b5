"""
The documents ``maven-metadata.xml``: uploads are read and merged, documents are joined from fragments.

Read ``reading`` first (bytes in), then ``document`` (bytes out), ``joining`` (fragments), ``uploads``, ``plugins`` and
``requests``.
"""
