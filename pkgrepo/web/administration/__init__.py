"""Pages for those who manage the server: repositories, storages, users and their permissions, the audit log."""
