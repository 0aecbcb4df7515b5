-- The events that record the removal of a repository, which a check of all files of a storage looks for among all events.
CREATE INDEX event_removed ON event (repository_id) WHERE kind = 'repository_removed';
