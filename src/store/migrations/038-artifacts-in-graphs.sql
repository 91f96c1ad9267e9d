-- oldest-program: 0.1.0
--
-- Workflows that are steps of others name artifacts until they start. An index that few rows are in; no row is rewritten. It says
-- nothing of the outcome of a step, because then no change of one could stay in its page.
CREATE INDEX steps_with_graphs ON punctual.steps (tenant) WHERE inner_graph IS NOT NULL;
