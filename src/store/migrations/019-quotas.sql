-- oldest-program: 0.1.0
--
-- Quotas of tenants. All columns are new and null, which is no quota; no row is rewritten.
ALTER TABLE punctual.tenants
  ADD COLUMN quota_live_jobs int,
  ADD COLUMN quota_later_jobs int,
  ADD COLUMN quota_schedules int,
  ADD COLUMN quota_queues int,
  ADD COLUMN quota_submissions_per_second int,
  ADD COLUMN quota_payload_bytes int;

-- One row: how often quotas were changed. Nodes keep quotas in memory and read this number instead of every tenant.
CREATE TABLE punctual.quotas_version (
  one      boolean PRIMARY KEY DEFAULT true CHECK (one),
  version  bigint NOT NULL
);
INSERT INTO punctual.quotas_version (version) VALUES (1);

-- At least as many jobs as a tenant has, for tenants with a quota of jobs. Whoever submits for such a tenant adds to its row in
-- the transaction that stores the jobs, so that two submissions can never both take the last room. Ends of jobs are not
-- subtracted: the jobs are counted anew, under a lock on the row, when there seems to be no room left. Null is unknown.
CREATE TABLE punctual.tenant_usage (
  tenant      text PRIMARY KEY,
  live        bigint,
  later       bigint,
  -- When the jobs were last counted, and how long that took.
  counted_at  bigint NOT NULL DEFAULT 0,
  count_ms    int NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- A trigger, so that every change counts, whoever makes it and with whatever statement. What was counted under the old quota is
-- forgotten: no more jobs were counted than mattered.
CREATE FUNCTION punctual.quotas_changed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, punctual, pg_temp AS $$
BEGIN
  UPDATE punctual.quotas_version SET version = version + 1;
  IF NEW.quota_live_jobs IS NULL AND NEW.quota_later_jobs IS NULL THEN
    DELETE FROM punctual.tenant_usage u WHERE u.tenant = NEW.id;
  ELSE
    INSERT INTO punctual.tenant_usage (tenant) VALUES (NEW.id)
    ON CONFLICT (tenant) DO UPDATE SET live = NULL, later = NULL, counted_at = 0;
  END IF;
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION punctual.quotas_changed() FROM PUBLIC;

CREATE TRIGGER quotas_given AFTER INSERT ON punctual.tenants FOR EACH ROW
  WHEN ((NEW.quota_live_jobs, NEW.quota_later_jobs, NEW.quota_schedules, NEW.quota_queues, NEW.quota_submissions_per_second,
    NEW.quota_payload_bytes) IS DISTINCT FROM (NULL::int, NULL::int, NULL::int, NULL::int, NULL::int, NULL::int))
  EXECUTE FUNCTION punctual.quotas_changed();
CREATE TRIGGER quotas_changed
  AFTER UPDATE OF quota_live_jobs, quota_later_jobs, quota_schedules, quota_queues, quota_submissions_per_second,
    quota_payload_bytes ON punctual.tenants FOR EACH ROW
  WHEN ((NEW.quota_live_jobs, NEW.quota_later_jobs, NEW.quota_schedules, NEW.quota_queues, NEW.quota_submissions_per_second,
    NEW.quota_payload_bytes) IS DISTINCT FROM (OLD.quota_live_jobs, OLD.quota_later_jobs, OLD.quota_schedules, OLD.quota_queues,
    OLD.quota_submissions_per_second, OLD.quota_payload_bytes))
  EXECUTE FUNCTION punctual.quotas_changed();

-- How many queues each tenant has, as differences that add up, so that a new queue costs no count. Whoever adds or removes queues
-- only appends, and so waits for nobody; the differences of a tenant are folded when it gets a new queue. Making the triggers
-- keeps new queues waiting until the existing ones are counted, which takes a fraction of a second for a million of them.
CREATE TABLE punctual.queue_counts (
  tenant  text NOT NULL,
  queues  bigint NOT NULL
);
CREATE INDEX queue_counts_by_tenant ON punctual.queue_counts (tenant);
CREATE FUNCTION punctual.count_queues() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, punctual, pg_temp AS $$
BEGIN
  INSERT INTO punctual.queue_counts (tenant, queues)
  SELECT c.tenant, CASE TG_OP WHEN 'INSERT' THEN count(*) ELSE -count(*) END FROM changed c GROUP BY c.tenant;
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION punctual.count_queues() FROM PUBLIC;
CREATE TRIGGER queues_added AFTER INSERT ON punctual.queues
  REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION punctual.count_queues();
CREATE TRIGGER queues_removed AFTER DELETE ON punctual.queues
  REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION punctual.count_queues();
INSERT INTO punctual.queue_counts SELECT tenant, count(*) FROM punctual.queues GROUP BY tenant;

-- Adds queues that do not exist yet, and answers with those that their tenants have no room for; then it adds none. `most` is the
-- quota of a tenant without one of its own; null checks nothing. Queues of one tenant are added one transaction after the other,
-- and each statement of the function sees what the transaction before has committed, so the quota is exact. The lock is not on the
-- tenant's row because a tenant may have none. Only names that are new cost more than a look-up.
CREATE FUNCTION punctual.add_queues(tenants text[], names text[], now_ms bigint, most bigint)
RETURNS TABLE (tenant text, name text, quota bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, punctual, pg_temp AS $$
DECLARE
  owner text;
  allowed bigint;
  used bigint;
  is_refused boolean := false;
BEGIN
  IF most IS NOT NULL THEN
    FOR owner IN
      SELECT DISTINCT u.tenant FROM unnest(tenants, names) u(tenant, name)
      WHERE NOT EXISTS (SELECT 1 FROM punctual.queues q WHERE q.tenant = u.tenant AND q.name = u.name)
      ORDER BY 1
    LOOP
      PERFORM pg_advisory_xact_lock(hashtext('punctual.queues'), hashtext(owner));
      allowed := coalesce((SELECT t.quota_queues FROM punctual.tenants t WHERE t.id = owner), most);
      WITH folded AS (DELETE FROM punctual.queue_counts c WHERE c.tenant = owner RETURNING c.queues)
      SELECT coalesce(sum(f.queues), 0) INTO used FROM folded f;
      INSERT INTO punctual.queue_counts VALUES (owner, used);
      RETURN QUERY
        SELECT owner, m.name, allowed
        FROM (
          SELECT u.name, row_number() OVER (ORDER BY min(u.place)) AS place
          FROM unnest(tenants, names) WITH ORDINALITY u(tenant, name, place)
          WHERE u.tenant = owner
            AND NOT EXISTS (SELECT 1 FROM punctual.queues q WHERE q.tenant = owner AND q.name = u.name)
          GROUP BY u.name) m
        WHERE m.place > allowed - used;
      IF FOUND THEN is_refused := true; END IF;
    END LOOP;
    IF is_refused THEN RETURN; END IF;
  END IF;
  INSERT INTO punctual.queues (tenant, name, created_at, used_at)
  SELECT u.tenant, u.name, now_ms, now_ms FROM unnest(tenants, names) u(tenant, name)
  WHERE NOT EXISTS (SELECT 1 FROM punctual.queues q WHERE q.tenant = u.tenant AND q.name = u.name)
  ORDER BY 1, 2
  ON CONFLICT ON CONSTRAINT queues_tenant_name_key DO NOTHING;
END $$;
REVOKE ALL ON FUNCTION punctual.add_queues(text[], text[], bigint, bigint) FROM PUBLIC;
