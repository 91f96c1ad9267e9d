-- oldest-program: 0.1.0
--
-- The edges that a workflow is submitted with are kept in its steps from now on: a row with two entries in indexes for each edge was
-- a third of the cost of a submission. `edges` keeps those of steps that are added later, and of workflows that an older program
-- stored, until they are forgotten. New columns without values; no row is rewritten.

ALTER TABLE punctual.steps
  -- The steps that it waits for, and those that wait for it, as submitted, in the order of their ids; null if there are none.
  ADD COLUMN parent_ids uuid[],
  ADD COLUMN child_ids uuid[];
-- Long lists are ids of one moment in the main, and not worth the time to compress them.
ALTER TABLE punctual.steps ALTER COLUMN parent_ids SET STORAGE EXTERNAL, ALTER COLUMN child_ids SET STORAGE EXTERNAL;
