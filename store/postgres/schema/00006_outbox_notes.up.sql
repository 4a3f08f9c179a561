-- How often an event has failed, so that relays that restart count on.

ALTER TABLE semel_outbox ADD COLUMN failures integer NOT NULL DEFAULT 0;

-- Operators' decisions on parked aggregates. They are kept for ever.
CREATE TABLE semel_outbox_notes (
  note          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  aggregatetype text        NOT NULL,
  aggregateid   text        NOT NULL,
  id            uuid        NOT NULL,        -- the event that could not be published
  type          text        NOT NULL,
  parking       smallint    NOT NULL CHECK (parking BETWEEN 2 AND 3), -- redriven; the same without the event
  actor         bytea       NOT NULL,
  reason        bytea       NOT NULL,
  created       timestamptz NOT NULL
);
