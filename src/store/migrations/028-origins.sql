-- oldest-program: 0.1.0
--
-- Limits of the origins that http targets call, where somebody has set others than the usual ones. A new table, and an index that
-- no row is in yet; no row is rewritten.
CREATE TABLE punctual.origin_limits (
  tenant       text NOT NULL,
  -- Scheme, host and port of the URL, or the bucket that origins share.
  origin       text NOT NULL,
  -- Calls that run at the same time: null is the usual number, 0 is no limit.
  concurrency  int,
  rate_limit   int,
  rate_per     bigint,
  rate_burst   int,
  changed_at   bigint NOT NULL,
  PRIMARY KEY (tenant, origin)
);
ALTER TABLE punctual.origin_limits ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON punctual.origin_limits FOR SELECT USING (tenant = current_setting('punctual.tenant', true));

-- How many backlogs of their own the origins of a tenant have.
CREATE INDEX needs_of_origins ON punctual.needs (tenant) WHERE target = 'http' AND handler NOT LIKE 'bucket:%';
