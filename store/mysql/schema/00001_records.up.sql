-- The records of Semel, and why some of them were changed by hand.
--
-- Times are microseconds since 1970 by the server's clock (UTC). Names and keys are
-- binary, because they are kept byte for byte. Every statement can be repeated, because
-- each of them commits by itself.

CREATE TABLE IF NOT EXISTS semel_records (
  id          BINARY(16)        NOT NULL PRIMARY KEY,  -- a digest of operation, scope and key
  owner       BIGINT UNSIGNED   NOT NULL,
  due         BIGINT            NULL,                  -- Pending: may be claimed from then on; InProgress: its lease ends
  expires     BIGINT            NULL,                  -- may be purged from then on; null: never
  created     BIGINT            NOT NULL,
  changed     BIGINT            NOT NULL,              -- when state, attempt and owner last changed
  attempt     INT UNSIGNED      NOT NULL,
  state       TINYINT UNSIGNED  NOT NULL,              -- 1 to 5: Pending, InProgress, InDoubt, Succeeded, Failed
  priority    TINYINT           NOT NULL,              -- -4 to 4: a higher one is claimed first
  tainted     TINYINT           NOT NULL,              -- 1: an earlier attempt may have had an effect
  operation   VARBINARY(255)    NOT NULL,
  scope       VARBINARY(1024)   NOT NULL,
  k           VARBINARY(255)    NOT NULL,
  fingerprint LONGBLOB          NULL,
  input       LONGBLOB          NULL,
  outcome     LONGBLOB          NULL,
  KEY semel_due (state, due),                          -- for the sweeper, and for lists of one state
  KEY semel_queue (operation, state, priority, due),   -- for the workers
  KEY semel_expires (expires)                          -- for the purge
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS semel_notes (
  note         BIGINT           NOT NULL AUTO_INCREMENT PRIMARY KEY,
  id           BINARY(16)       NOT NULL,
  from_state   TINYINT UNSIGNED NOT NULL,
  from_attempt INT UNSIGNED     NOT NULL,
  from_owner   BIGINT UNSIGNED  NOT NULL,
  to_state     TINYINT UNSIGNED NOT NULL,
  to_attempt   INT UNSIGNED     NOT NULL,
  to_owner     BIGINT UNSIGNED  NOT NULL,
  actor        LONGBLOB         NOT NULL,
  reason       LONGBLOB         NOT NULL,
  created      BIGINT           NOT NULL,
  UNIQUE KEY semel_once (id, to_owner, to_attempt, to_state)
) ENGINE=InnoDB;

-- Empty, but for open transactions: the mark of each, a random number, and the id of the
-- record that it holds. A mark that was committed shows a transaction that its handler
-- has ended.
CREATE TABLE IF NOT EXISTS semel_guard (
  id BINARY(16) NOT NULL PRIMARY KEY
) ENGINE=InnoDB;
