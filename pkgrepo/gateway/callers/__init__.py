"""Who sends a request: credentials in every place where clients put them, identification, and checks of permissions."""
