-- oldest-program: 0.1.0
--
-- What queues did, by the minute, for a day: written once a minute by the leader, from its memory. New table.

CREATE TABLE punctual.queue_minutes (
  queue            int NOT NULL,
  minute           bigint NOT NULL,
  -- Attempts that ended in the minute.
  ended            bigint NOT NULL,
  -- At the end of the minute: jobs in the memory of the leader that were due, and for how long.
  ready            bigint NOT NULL,
  oldest_ready_ms  bigint NOT NULL,
  PRIMARY KEY (queue, minute)
);
CREATE INDEX queue_minutes_by_minute ON punctual.queue_minutes (minute);
