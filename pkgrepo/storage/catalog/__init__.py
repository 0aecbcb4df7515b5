"""
The catalog: what is stored where, who may touch it, and what happened.

``sqlite`` is the engine. Every other module holds the queries and commands of one family of tables, as plain functions
over a ``Reader`` or a ``Transaction``, in the SQL that SQLite and PostgreSQL have in common (see L{engine.dialect}).

A test reads every statement from the source and has both engines prepare it. SQL is therefore put together from
literals, constants of its module, ``if`` expressions and the functions of L{clauses}, and passed to a parameter
annotated ``Reader`` or ``Transaction``, or to a function of L{rows}.
"""
