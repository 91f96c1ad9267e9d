-- oldest-program: 0.1.0
--
-- Secrets of tenants, and the secrets with which calls are signed. Values are encrypted by nodes, under a master key that the
-- database does not have. New tables; no row is rewritten.

CREATE TABLE punctual.secrets (
  tenant      text NOT NULL,
  name        text NOT NULL,
  -- Authenticated with the value, as tenant and name are.
  version     int NOT NULL,
  -- The master key that the value needs.
  key_id      text NOT NULL,
  sealed      bytea NOT NULL,
  -- Where the value may be sent to.
  origins     text[] NOT NULL,
  created_at  bigint NOT NULL,
  created_by  text NOT NULL,
  changed_at  bigint NOT NULL,
  changed_by  text NOT NULL,
  PRIMARY KEY (tenant, name)
);
-- For a change of the master key, which looks for what is under the old one.
CREATE INDEX secrets_by_key ON punctual.secrets (key_id, tenant, name);
-- Random bytes tell a planner nothing.
ALTER TABLE punctual.secrets ALTER COLUMN sealed SET STATISTICS 0;

CREATE TABLE punctual.signing_secrets (
  tenant      text NOT NULL,
  id          uuid NOT NULL,
  key_id      text NOT NULL,
  sealed      bytea NOT NULL,
  created_at  bigint NOT NULL,
  -- Null for one that was not replaced yet.
  expires_at  bigint,
  PRIMARY KEY (tenant, id)
);
CREATE INDEX signing_secrets_by_key ON punctual.signing_secrets (key_id, tenant, id);
ALTER TABLE punctual.signing_secrets ALTER COLUMN sealed SET STATISTICS 0;

ALTER TABLE punctual.secrets ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON punctual.secrets FOR SELECT USING (tenant = current_setting('punctual.tenant', true));
ALTER TABLE punctual.signing_secrets ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON punctual.signing_secrets FOR SELECT
  USING (tenant = current_setting('punctual.tenant', true));
