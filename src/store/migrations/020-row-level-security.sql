-- oldest-program: 0.1.0
--
-- Row-level security: what is read for people is read by a role that sees the rows of one tenant only, whatever a statement
-- asks for. The owner of the tables, as whom nodes do everything else, is exempt.
--
-- The policies name no role: roles belong to the whole server, so a dump could not be restored where the role is missing.
-- The role and its rights are made by nodes when they start, see store/tenant-wall.ts. These are changes of the catalogue
-- alone; no row is read or written. The tables that jobs wait for come last, so that they are locked for the shortest time.
--
-- Not on `queues`: joined to a list of jobs, its policy made the list eight times as slow. The role reads ids and names there.

-- The setting is null where it was never made, and empty after the transaction that made it: no tenant has that id.
ALTER TABLE punctual.audit ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON punctual.audit FOR SELECT USING (tenant = current_setting('punctual.tenant', true));
ALTER TABLE punctual.tasks ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON punctual.tasks FOR SELECT USING (tenant = current_setting('punctual.tenant', true));
ALTER TABLE punctual.occurrences ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON punctual.occurrences FOR SELECT USING (tenant = current_setting('punctual.tenant', true));
ALTER TABLE punctual.schedules ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON punctual.schedules FOR SELECT USING (tenant = current_setting('punctual.tenant', true));
-- Partitions that are read through their table follow its policy. Nobody but the owner has rights on one itself.
ALTER TABLE punctual.job_logs ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON punctual.job_logs FOR SELECT USING (tenant = current_setting('punctual.tenant', true));
ALTER TABLE punctual.job_history ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON punctual.job_history FOR SELECT USING (tenant = current_setting('punctual.tenant', true));
ALTER TABLE punctual.keys ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON punctual.keys FOR SELECT USING (tenant = current_setting('punctual.tenant', true));
ALTER TABLE punctual.later ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON punctual.later FOR SELECT USING (tenant = current_setting('punctual.tenant', true));
ALTER TABLE punctual.jobs ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON punctual.jobs FOR SELECT USING (tenant = current_setting('punctual.tenant', true));

-- A claim has no tenant but that of its job, whose policy holds inside this one. Not EXISTS, for which the planner may read
-- all jobs into a hash table.
ALTER TABLE punctual.claims ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON punctual.claims FOR SELECT
  USING ((SELECT true FROM punctual.jobs j WHERE j.id = claims.job));
