"""Reading the audit log. Its rows are written by ``api.audit_log``."""
