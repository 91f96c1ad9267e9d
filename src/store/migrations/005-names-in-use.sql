-- oldest-program: 0.1.0
--
-- Names of queues and needs come and go: those that nothing uses any more are removed.

-- The last moment at which a job uses the name, as far as is known: its due time if that lies ahead. Raised at most
-- every few hours, so that submissions do not wait for each other at the row of their queue.
DO $$
DECLARE
  last_use bigint := greatest(
    floor(extract(epoch FROM clock_timestamp()) * 1000),
    (SELECT max(run_at) FROM punctual.later));
BEGIN
  -- A constant default, so that no row is rewritten.
  EXECUTE format('ALTER TABLE punctual.queues ADD COLUMN used_at bigint NOT NULL DEFAULT %s', last_use);
  EXECUTE format('ALTER TABLE punctual.needs ADD COLUMN used_at bigint NOT NULL DEFAULT %s', last_use);
END $$;

-- For programs that do not know the column yet.
ALTER TABLE punctual.queues
  ALTER COLUMN used_at SET DEFAULT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint;
ALTER TABLE punctual.needs
  ALTER COLUMN used_at SET DEFAULT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint;

-- Held jobs wait for as long as somebody likes, so their names are looked for; all others have a due time.
CREATE INDEX later_held ON punctual.later (queue, needs) WHERE held;

-- Counts the label sets of a tenant.
CREATE INDEX needs_with_labels ON punctual.needs (tenant) WHERE labels <> '';
