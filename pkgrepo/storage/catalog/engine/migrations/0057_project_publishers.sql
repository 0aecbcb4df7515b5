-- Publishers of projects: pipelines that publish the packages which a project owns.
ALTER TABLE project ADD COLUMN publishers TEXT NOT NULL DEFAULT '[]';
