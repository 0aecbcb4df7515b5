"""
The catalog in PostgreSQL, for several nodes.

It runs the queries and commands of the embedded engine, in the SQL that L{pkgrepo.storage.catalog.engine.dialect}
translates. psycopg is installed with the extra ``postgresql`` of the package.
"""

from pkgrepo.storage.catalog.postgresql.readers import reading_once

from .catalog import PostgresCatalog
from .nodes import Nodes
from .sessions import Address
from .transfer import check_empty, copy_to_postgresql, copy_to_sqlite

__all__ = ["Address", "Nodes", "PostgresCatalog", "check_empty", "copy_to_postgresql", "copy_to_sqlite", "reading_once"]
