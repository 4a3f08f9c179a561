-- The records of Semel, and the notes of changes by operators.
--
-- Owners are unsigned numbers that are stored as signed ones. Names and keys are bytea,
-- because every byte counts. Input and outcome are null until they are written. There is
-- no CHECK of the states: the server would prepare it again for each statement, and the
-- store checks its changes before it sends them.

CREATE TABLE semel_records (
  id          uuid        NOT NULL PRIMARY KEY, -- a digest of operation, scope and key
  owner       bigint      NOT NULL,
  due         timestamptz,                      -- Pending: may be claimed from then on; InProgress: its lease ends
  expires     timestamptz,                      -- may be purged from then on; null: never
  created     timestamptz NOT NULL,
  changed     timestamptz NOT NULL,             -- when state, attempt and owner last changed
  attempt     integer     NOT NULL,
  state       smallint    NOT NULL,             -- 1 to 5: Pending, InProgress, InDoubt, Succeeded, Failed
  priority    smallint    NOT NULL,             -- -4 to 4: the highest waiting priority is claimed first
  tainted     boolean     NOT NULL,             -- an earlier attempt may have had an effect
  operation   bytea       NOT NULL,
  scope       bytea       NOT NULL,
  key         bytea       NOT NULL,
  fingerprint bytea,
  input       bytea,
  outcome     bytea
);

-- The sweeper reads the leases by this index, without the waiting records.
CREATE INDEX semel_leases ON semel_records (due) WHERE state = 2;

-- Workers read the waiting records of one operation and priority, in the order of their due
-- times. Reports on all waiting records read the whole index and sort: an index of their
-- own would make every claim and every completion slower.
CREATE INDEX semel_queue ON semel_records (operation, priority, due) WHERE state = 1;

-- Records that may be purged.
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
