-- oldest-program: 0.1.0
--
-- Answers to requests with an Idempotency-Key. A row is stored in the transaction of what the request does, so that after a
-- crash there are both or neither; the same request again is answered from it.

CREATE TABLE punctual.idempotency (
  tenant      text NOT NULL,
  key         text NOT NULL,
  -- SHA-256 of the request: another one with the same key is refused.
  request     bytea NOT NULL,
  status      smallint NOT NULL,
  location    text,
  -- The body, without what is large about a job.
  answer      json,
  -- The jobs of a bulk, sixteen bytes each; the rest of its answer is in `answer`.
  ids         uuid[],
  created_at  bigint NOT NULL,
  PRIMARY KEY (tenant, key)
);
-- Old rows are removed by their age.
CREATE INDEX idempotency_by_age ON punctual.idempotency (created_at);
