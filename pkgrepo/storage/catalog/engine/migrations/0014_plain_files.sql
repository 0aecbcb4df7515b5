-- Files that belong to no package, which would otherwise be found among all files of a repository.
CREATE INDEX file_plain ON file (repository_id, path) WHERE package_id IS NULL;
