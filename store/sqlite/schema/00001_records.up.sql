-- The records of Semel, and why some of them were changed by hand.
--
-- Times are microseconds since 1970 by SQLite's own clock. Owners are unsigned
-- numbers kept as signed ones. Names and keys are blobs, because they are kept
-- byte for byte.

CREATE TABLE semel_records (
  id          BLOB    NOT NULL PRIMARY KEY,  -- 16 bytes: a digest of operation, scope and key
  state       INTEGER NOT NULL CHECK (state BETWEEN 1 AND 5), -- Pending, InProgress, InDoubt, Succeeded, Failed
  attempt     INTEGER NOT NULL,
  owner       INTEGER NOT NULL,
  due         INTEGER,                       -- Pending: may be claimed from then on; InProgress: its lease ends
  expires     INTEGER,                       -- may be purged from then on; null: never
  created     INTEGER NOT NULL,
  changed     INTEGER NOT NULL,              -- when state, attempt and owner last changed
  tainted     INTEGER NOT NULL,              -- 1: an earlier attempt may have had an effect
  priority    INTEGER NOT NULL,              -- -4 to 4: the highest waiting priority is claimed first
  operation   BLOB    NOT NULL,
  scope       BLOB    NOT NULL,
  key         BLOB    NOT NULL,
  fingerprint BLOB    NOT NULL,
  input       BLOB    NOT NULL,
  outcome     BLOB    NOT NULL
) STRICT;

-- What the sweeper looks for: leases, however many records wait. And what reports
-- look for: those due first of all that wait.
CREATE INDEX semel_due ON semel_records (state, due) WHERE due IS NOT NULL;

-- What the workers look for: of one operation and priority, those due first.
CREATE INDEX semel_queue ON semel_records (operation, priority, due) WHERE state = 1;

-- What may be purged.
CREATE INDEX semel_expires ON semel_records (expires) WHERE expires IS NOT NULL;

CREATE TABLE semel_notes (
  note         INTEGER NOT NULL PRIMARY KEY,
  id           BLOB    NOT NULL,
  from_state   INTEGER NOT NULL,
  from_attempt INTEGER NOT NULL,
  from_owner   INTEGER NOT NULL,
  to_state     INTEGER NOT NULL,
  to_attempt   INTEGER NOT NULL,
  to_owner     INTEGER NOT NULL,
  actor        BLOB    NOT NULL,
  reason       BLOB    NOT NULL,
  created      INTEGER NOT NULL,
  UNIQUE (id, to_owner, to_attempt, to_state)
) STRICT;

-- An open transaction has its mark here, and deletes it with its last change. A mark that
-- was committed therefore shows that the handler ended the transaction. Zero is never
-- stored: deleting it takes the write lock and changes nothing.
CREATE TABLE semel_guard (
  mark INTEGER NOT NULL PRIMARY KEY CHECK (mark <> 0)
) STRICT;
