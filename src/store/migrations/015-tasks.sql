-- oldest-program: 0.1.0
--
-- Tasks: named definitions with the defaults of their jobs.

CREATE TABLE punctual.tasks (
  tenant        text NOT NULL,
  name          text NOT NULL,
  -- What was asked for, in the form of the public API, without the name.
  definition    json NOT NULL,
  -- The worker that published it from its code; null when a person defined it.
  published_by  text,
  created_at    bigint NOT NULL,
  created_by    text NOT NULL,
  changed_at    bigint NOT NULL,
  changed_by    text NOT NULL,
  version       int NOT NULL DEFAULT 1,
  PRIMARY KEY (tenant, name)
);

-- Counts the changes of definitions, in one row. Whoever changes one takes this row first, so the numbers have the order
-- of the commits, and whoever has read up to a number has missed none before it.
CREATE TABLE punctual.task_changes (
  id       int PRIMARY KEY CHECK (id = 1),
  version  bigint NOT NULL
);
INSERT INTO punctual.task_changes (id, version) VALUES (1, 0);

-- The tenants that have, or had, definitions: the number of the newest change, and how many definitions there are, of how
-- many bytes together. A node learns from it what it must read again, with one look at an index however many tenants there are.
CREATE TABLE punctual.task_tenants (
  tenant   text PRIMARY KEY,
  version  bigint NOT NULL,
  tasks    int NOT NULL,
  bytes    bigint NOT NULL
);
CREATE UNIQUE INDEX task_tenants_by_version ON punctual.task_tenants (version);
