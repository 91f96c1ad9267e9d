-- oldest-program: 0.1.0
--
-- Names of queues and needs come and go: those that nothing uses any more are removed.

-- When a job was last known to use the name. Raised at most every few hours, so that submissions do not wait for each
-- other at the row of their queue.
DO $$
DECLARE
  now_ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
BEGIN
  -- A constant default, so that no row is rewritten.
  EXECUTE format('ALTER TABLE punctual.queues ADD COLUMN used_at bigint NOT NULL DEFAULT %s', now_ms);
  EXECUTE format('ALTER TABLE punctual.needs ADD COLUMN used_at bigint NOT NULL DEFAULT %s', now_ms);
END $$;

-- For programs that do not know the column yet.
ALTER TABLE punctual.queues
  ALTER COLUMN used_at SET DEFAULT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint;
ALTER TABLE punctual.needs
  ALTER COLUMN used_at SET DEFAULT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint;

-- Counts the label sets of a tenant.
CREATE INDEX needs_with_labels ON punctual.needs (tenant) WHERE labels <> '';
