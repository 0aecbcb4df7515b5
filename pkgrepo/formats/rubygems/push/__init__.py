"""A push: the body becomes a staged blob, its archive and gemspec are checked, and a release is published."""
