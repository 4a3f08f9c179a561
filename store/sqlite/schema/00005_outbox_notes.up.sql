-- How often an event has failed, so that relays that restart count on.

ALTER TABLE semel_outbox ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;

-- Operators' decisions on parked aggregates. They are kept for ever.
CREATE TABLE semel_outbox_notes (
  note          INTEGER NOT NULL PRIMARY KEY,
  aggregatetype TEXT    NOT NULL,
  aggregateid   TEXT    NOT NULL,
  id            TEXT    NOT NULL,            -- the event that could not be published
  type          TEXT    NOT NULL,
  parking       INTEGER NOT NULL CHECK (parking BETWEEN 2 AND 3), -- redriven; the same without the event
  actor         BLOB    NOT NULL,
  reason        BLOB    NOT NULL,
  created       INTEGER NOT NULL
) STRICT;
