-- The records of Semel, and why some of them were changed by hand.
--
-- Owners are unsigned numbers kept as signed ones. Names and keys are bytea,
-- because they are kept byte for byte. Input and outcome are null until they are
-- written. No CHECK says which states there are, because the server prepares it again
-- for each statement, and what comes from the store has been checked.

-- +goose Up

CREATE TABLE semel_records (
  id          uuid        NOT NULL PRIMARY KEY, -- a digest of operation, scope and key
  owner       bigint      NOT NULL,
  due         timestamptz,                      -- Pending: may be claimed from then on; InProgress: its lease ends
  expires     timestamptz,                      -- may be purged from then on; null: never
  created     timestamptz NOT NULL,
  changed     timestamptz NOT NULL,             -- when state, attempt and owner last changed
  attempt     integer     NOT NULL,
  state       smallint    NOT NULL,             -- 1 to 5: Pending, InProgress, InDoubt, Succeeded, Failed
  priority    smallint    NOT NULL,             -- -4 to 4: who goes first of those that wait
  tainted     boolean     NOT NULL,             -- an earlier attempt may have had an effect
  operation   bytea       NOT NULL,
  scope       bytea       NOT NULL,
  key         bytea       NOT NULL,
  fingerprint bytea,
  input       bytea,
  outcome     bytea
);

-- What workers and sweepers look for: of one operation, what waits by its priority, and
-- what runs; those due first. It is one index and not one for each of them, because
-- the server prepares the condition of each again for each statement.
CREATE INDEX semel_open ON semel_records (state, operation, priority, due) WHERE state < 3;

-- What may be purged.
CREATE INDEX semel_expires ON semel_records (expires) WHERE expires IS NOT NULL;

CREATE TABLE semel_notes (
  note         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id           uuid        NOT NULL,
  from_owner   bigint      NOT NULL,
  to_owner     bigint      NOT NULL,
  from_attempt integer     NOT NULL,
  to_attempt   integer     NOT NULL,
  from_state   smallint    NOT NULL,
  to_state     smallint    NOT NULL,
  created      timestamptz NOT NULL,
  actor        bytea       NOT NULL,
  reason       bytea       NOT NULL,
  UNIQUE (id, to_owner, to_attempt, to_state)
);

-- +goose Down

DROP TABLE semel_notes;
DROP TABLE semel_records;
