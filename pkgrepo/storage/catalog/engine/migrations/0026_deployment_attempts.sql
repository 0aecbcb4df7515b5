-- How often a process took over a deployment whose process was stopped, and those that one works on or should.
ALTER TABLE deployment ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
CREATE INDEX deployment_lease ON deployment (lease_until) WHERE lease_until IS NOT NULL;
