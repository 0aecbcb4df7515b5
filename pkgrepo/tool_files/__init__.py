"""
The configuration files of package tools such as npm and pip, as data: ``tools`` says what each tool needs, ``places``
where its files are, and ``edit`` in ``editing`` puts it into the text of a file, the rest of which stays as it is.

The server prints these texts for people, and the command line writes them.
"""
