"""
The catalog: what is stored where, who may touch it, and what happened.

``sqlite`` is the engine. Every other module holds the queries and commands of one family of tables, as plain functions
over a ``Reader`` or a ``Transaction``, in the SQL that SQLite and PostgreSQL have in common.
"""
