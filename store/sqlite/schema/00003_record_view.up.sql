-- What people and reports read: the records with readable columns, and nothing that
-- belongs to a caller. Scope and key are left out, because SQLite has no hash function.
-- The program semel shows them as hashes: the first twelve hexadecimal digits of the
-- SHA-256 of the salt and the value. The salt keeps a list of hashes from being compared
-- with the hashes of guessed values.

CREATE TABLE semel_salt (
  one  INTEGER NOT NULL PRIMARY KEY CHECK (one = 1), -- so that there is one row
  salt BLOB    NOT NULL
) STRICT;

-- SQLite seeds its generator from the operating system.
INSERT INTO semel_salt (one, salt) VALUES (1, randomblob(32));

-- No expression in the view fails for any bytes: one damaged record must not make a report
-- fail.
CREATE VIEW semel_record_view AS
SELECT
  lower(hex(id)) AS id,
  CAST(operation AS TEXT) AS operation,
  CASE state
    WHEN 1 THEN 'Pending' WHEN 2 THEN 'InProgress' WHEN 3 THEN 'InDoubt'
    WHEN 4 THEN 'Succeeded' WHEN 5 THEN 'Failed'
  END AS state,
  attempt,
  priority,
  tainted,
  strftime('%Y-%m-%dT%H:%M:%fZ', created / 1e6, 'unixepoch') AS created,
  strftime('%Y-%m-%dT%H:%M:%fZ', changed / 1e6, 'unixepoch') AS changed,
  CASE WHEN state = 1 THEN strftime('%Y-%m-%dT%H:%M:%fZ', due / 1e6, 'unixepoch') END AS due,
  CASE WHEN state = 2 THEN strftime('%Y-%m-%dT%H:%M:%fZ', due / 1e6, 'unixepoch') END AS lease_ends,
  strftime('%Y-%m-%dT%H:%M:%fZ', expires / 1e6, 'unixepoch') AS expires,
  CASE WHEN state IN (3, 5) AND substr(outcome, 1, 1) = x'64' THEN 1 ELSE 0 END AS dead_letter,
  CASE WHEN state IN (3, 5) AND substr(outcome, 1, 1) IN (x'64', x'66') AND json_valid(CAST(substr(outcome, 2) AS TEXT))
    THEN json_extract(CAST(substr(outcome, 2) AS TEXT), '$.code')
  END AS failure_code,
  length(input) AS input_bytes,
  length(outcome) AS outcome_bytes
FROM semel_records;
