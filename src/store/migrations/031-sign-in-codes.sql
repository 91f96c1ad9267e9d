-- oldest-program: 0.1.0
--
-- One-time codes with which a browser signs in to the dashboard without being shown a key. New table; no row is rewritten.

CREATE TABLE punctual.sign_in_codes (
  -- Keyed by the secret of the cluster, as the hashes of keys are.
  hash        bytea PRIMARY KEY,
  -- A code ends with its key.
  key_id      uuid NOT NULL REFERENCES punctual.api_keys (id) ON DELETE CASCADE,
  created_at  bigint NOT NULL,
  expires_at  bigint NOT NULL
);
CREATE INDEX sign_in_codes_by_key ON punctual.sign_in_codes (key_id, created_at);
