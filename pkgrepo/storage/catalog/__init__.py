"""
The catalog: the database of packages, images, users, permissions, settings and events.

``engine`` connects to SQLite or PostgreSQL and runs transactions. Every other module holds the queries and commands of
a group of tables: plain functions whose first parameter is a ``Reader`` or a ``Transaction``, in the SQL that both
engines understand (see L{engine.dialect}).

A test collects every SQL statement from the source and prepares it on both engines. A statement may therefore only be
built from literals, constants of its module, ``if`` expressions and functions of L{rows}. It is passed to a method of a
parameter annotated ``Reader`` or ``Transaction``, or to a function of L{rows}.

``engine/schema.sql`` shows every table.
"""
