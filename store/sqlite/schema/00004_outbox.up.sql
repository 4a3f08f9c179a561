-- Events that transactions append and a relay publishes. The names of the columns are
-- those of Debezium's outbox event router. seq is the position; AUTOINCREMENT never gives
-- one twice. An event of a parked aggregate that was set aside has the lane -1 - lane.

CREATE TABLE semel_outbox (
  seq           INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  id            TEXT    NOT NULL,            -- a UUID
  lane          INTEGER NOT NULL,            -- 0 to 63, by a digest of the aggregate
  aggregatetype TEXT    NOT NULL,            -- the topic
  aggregateid   TEXT    NOT NULL,
  type          TEXT    NOT NULL,
  payload       BLOB    NOT NULL,
  headers       TEXT    NOT NULL,            -- a JSON object
  created       INTEGER NOT NULL             -- microseconds since 1970
) STRICT;

CREATE INDEX semel_outbox_lane ON semel_outbox (lane, seq);

-- Aggregates whose first event could not be published.
CREATE TABLE semel_outbox_parked (
  aggregatetype TEXT    NOT NULL,
  aggregateid   TEXT    NOT NULL,
  lane          INTEGER NOT NULL,            -- 0 to 63
  seq           INTEGER NOT NULL,            -- of the event that could not be published
  id            TEXT    NOT NULL,
  type          TEXT    NOT NULL,
  failures      INTEGER NOT NULL,
  reason        TEXT    NOT NULL,            -- the last error
  parking       INTEGER NOT NULL CHECK (parking BETWEEN 1 AND 3), -- parked; to be redriven; the same without the event
  created       INTEGER NOT NULL,
  PRIMARY KEY (aggregatetype, aggregateid)
) STRICT;
