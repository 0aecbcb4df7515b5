-- The owners of service accounts.
ALTER TABLE account ADD COLUMN owner_kind TEXT;
ALTER TABLE account ADD COLUMN owner_id INTEGER;
CREATE INDEX account_owner ON account (owner_kind, owner_id) WHERE owner_id IS NOT NULL;
