"""The JSON API below ``/api``: storages, repositories, people, tokens, projects, packages, the audit log, figures."""
