-- The versions of a package are listed by time, a page at a time. Without it, each page of 5,000 versions was sorted.
CREATE INDEX version_published ON version (package_id, published_at, key);
