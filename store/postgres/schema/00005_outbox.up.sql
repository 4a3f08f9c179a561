-- Events that transactions append and a relay publishes. The names of the columns are
-- those of Debezium's outbox event router. seq is the position; its sequence must not
-- cache numbers. An event of a parked aggregate that was set aside has the lane
-- -1 - lane.

CREATE TABLE semel_outbox (
  seq           bigint      GENERATED ALWAYS AS IDENTITY (CACHE 1) PRIMARY KEY,
  id            uuid        NOT NULL,
  lane          smallint    NOT NULL,        -- 0 to 63, by a digest of the aggregate
  aggregatetype text        NOT NULL,        -- the topic
  aggregateid   text        NOT NULL,
  type          text        NOT NULL,
  payload       bytea       NOT NULL,
  headers       text        NOT NULL,        -- a JSON object
  created       timestamptz NOT NULL
);

CREATE INDEX semel_outbox_lane ON semel_outbox (lane, seq);

-- Every row is deleted soon, so the dead ones must be removed early.
ALTER TABLE semel_outbox SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Aggregates whose first event could not be published.
CREATE TABLE semel_outbox_parked (
  aggregatetype text        NOT NULL,
  aggregateid   text        NOT NULL,
  lane          smallint    NOT NULL,        -- 0 to 63
  seq           bigint      NOT NULL,        -- of the event that could not be published
  id            uuid        NOT NULL,
  type          text        NOT NULL,
  failures      integer     NOT NULL,
  reason        text        NOT NULL,        -- the last error
  parking       smallint    NOT NULL CHECK (parking BETWEEN 1 AND 3), -- parked; to be redriven; the same without the event
  created       timestamptz NOT NULL,
  PRIMARY KEY (aggregatetype, aggregateid)
);
