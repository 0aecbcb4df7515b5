"""
``pkgrepo repo apply``: makes repositories, groups, rights, projects and upkeep of a server those of a file.

``definitions`` reads the file and compares values; ``rights`` and ``upkeep`` plan the changes, ``commands`` makes them.
"""
