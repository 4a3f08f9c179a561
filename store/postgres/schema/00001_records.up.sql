-- The records of Semel, and why some of them were changed by hand.
--
-- Owners are unsigned numbers kept as signed ones. Names and keys are bytea,
-- because they are kept byte for byte. Input and outcome are null until they are
-- written. No CHECK says which states there are, because the server prepares it again
-- for each statement, and what comes from the store has been checked.

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

-- What the sweeper looks for: leases, however many records wait.
CREATE INDEX semel_leases ON semel_records (due) WHERE state = 2;

-- What the workers look for: of one operation and priority, those due first. Reports
-- on all that wait read it whole, and sort what is due; an index for them would be paid
-- for by every claim and every end.
CREATE INDEX semel_queue ON semel_records (operation, priority, due) WHERE state = 1;

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
