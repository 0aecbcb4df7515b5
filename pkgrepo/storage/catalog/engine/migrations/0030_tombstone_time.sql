-- Every new package looks for the last deletion of one with its name. Without statistics, the index without the time was
-- not used, and all tombstones of the repository were read.
DROP INDEX tombstone_package;
CREATE INDEX tombstone_package ON tombstone (repository_id, package_key, deleted_at);
