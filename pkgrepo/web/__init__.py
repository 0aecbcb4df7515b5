"""
The console: pages for people under ``/ui/``, rendered by the server.

A page is a function over a ``Visit``: it calls operations of the management API in process, so that permissions,
errors and the audit log are those of the API, and renders a template with the records that they return. Forms send
their fields to a function, which calls the operation that changes something and redirects to what it changed.
"""
