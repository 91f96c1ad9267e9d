-- oldest-program: 0.1.0
--
-- A step is changed twice: when it may run, and when it has ended. With room for a second row beside each in its page, no
-- change needs new entries in the indexes; with less, the steps of a wide graph, which change all at once, did not fit. New
-- pages alone are affected; nothing is rewritten.

ALTER TABLE punctual.steps SET (fillfactor = 45);
