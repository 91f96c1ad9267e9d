-- oldest-program: 0.1.0
--
-- What adding steps to a workflow looks up, and who holds a workflow inside another one. New columns without values or with
-- constant ones, and indexes; no row is rewritten.

ALTER TABLE punctual.workflows
  -- Whether it is on hold only because the workflow around it is.
  ADD COLUMN held_with_outer boolean NOT NULL DEFAULT false,
  -- How many entries of "after" its steps have, and the last place of a step; null if they have to be counted.
  ADD COLUMN edges int,
  ADD COLUMN last_place int;

-- Steps are named by those that are added and by their payloads.
CREATE INDEX steps_by_name ON punctual.steps (workflow, name);
-- Few steps are workflows, whose own steps count for the limit of the one around them.
CREATE INDEX steps_with_inner ON punctual.steps (workflow) WHERE inner_steps > 0;
