-- oldest-program: 0.1.0
--
-- Keys of tenants beside those of operators, and whom a worker session belongs to. All columns are new, and null or constant by
-- default: no row is rewritten but those of operators' worker sessions, of which there are few.

-- A null tenant is an operator's key. Null lists of queues and tasks mean no restriction. A key that is revoked is deleted: its
-- hash is of no use any more, and nothing has to be pruned.
ALTER TABLE punctual.api_keys
  ADD COLUMN tenant text,
  ADD COLUMN scopes text[] NOT NULL DEFAULT '{}',
  ADD COLUMN queues text[],
  ADD COLUMN tasks text[],
  ADD COLUMN expires_at bigint,
  ADD COLUMN created_by text,
  -- The beginning of the hour.
  ADD COLUMN last_used_at bigint;
-- Those of operators under the empty text.
CREATE INDEX api_keys_by_owner ON punctual.api_keys (coalesce(tenant, ''), id);

-- One row: how often keys were changed. Nodes keep keys in memory and read this number instead of every key.
CREATE TABLE punctual.keys_version (
  one      boolean PRIMARY KEY DEFAULT true CHECK (one),
  version  bigint NOT NULL
);
INSERT INTO punctual.keys_version (version) VALUES (1);

-- A trigger raises the number, so that every change counts, whoever makes it and with whatever statement. The time of the last
-- use is no change.
CREATE FUNCTION punctual.raise_keys_version() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, punctual, pg_temp AS $$
BEGIN
  UPDATE punctual.keys_version SET version = version + 1;
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION punctual.raise_keys_version() FROM PUBLIC;

CREATE TRIGGER keys_added AFTER INSERT OR DELETE OR TRUNCATE ON punctual.api_keys
  FOR EACH STATEMENT EXECUTE FUNCTION punctual.raise_keys_version();
CREATE TRIGGER keys_changed
  AFTER UPDATE OF id, name, hash, operator, tenant, scopes, queues, tasks, expires_at ON punctual.api_keys
  FOR EACH STATEMENT EXECUTE FUNCTION punctual.raise_keys_version();

-- Whether the session belongs to the operator, whose key opened it, and not to the tenant in its row. A session that serves all
-- tenants always does.
ALTER TABLE punctual.workers ADD COLUMN operator boolean NOT NULL DEFAULT false;
UPDATE punctual.workers SET operator = true WHERE punctual.readable(registration) ->> 'shared' = 'true';
