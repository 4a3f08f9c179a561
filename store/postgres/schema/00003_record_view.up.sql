-- What dashboards and psql read: the records with readable columns, and nothing that
-- belongs to a caller. A role that may read the view needs no right on the tables,
-- because a view reads them with the rights of its owner.
--
-- Scope and key are hashes: the first twelve hexadecimal digits of the SHA-256 of the
-- salt and the value. The program semel shows the same ones. The salt keeps a list of
-- hashes from being compared with the hashes of guessed values.

CREATE TABLE semel_salt (
  one  boolean NOT NULL DEFAULT true PRIMARY KEY CHECK (one), -- so that there is one row
  salt bytea   NOT NULL
);

-- The server's own cryptographic randomness, 244 bits of it: there is no other without
-- an extension.
INSERT INTO semel_salt (salt)
VALUES (decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex'));

-- No expression in the view fails for any bytes: one damaged record must not make a dashboard
-- fail. Names are therefore written with encode, and a pattern finds the code of a failure.
CREATE VIEW semel_record_view AS
SELECT
  replace(id::text, '-', '') AS id,
  replace(encode(operation, 'escape'), E'\\\\', E'\\') AS operation,
  CASE state
    WHEN 1 THEN 'Pending' WHEN 2 THEN 'InProgress' WHEN 3 THEN 'InDoubt'
    WHEN 4 THEN 'Succeeded' WHEN 5 THEN 'Failed'
  END AS state,
  left(encode(sha256((SELECT salt FROM semel_salt) || scope), 'hex'), 12) AS scope_hash,
  left(encode(sha256((SELECT salt FROM semel_salt) || key), 'hex'), 12) AS key_hash,
  attempt,
  priority,
  tainted,
  created,
  changed,
  CASE WHEN state = 1 THEN due END AS due,
  CASE WHEN state = 2 THEN due END AS lease_ends,
  expires,
  CASE WHEN state IN (3, 5) AND substr(outcome, 1, 1) = 'd'::bytea THEN true ELSE false END AS dead_letter,
  CASE WHEN state IN (3, 5)
    THEN substring(encode(substr(outcome, 1, 300), 'escape') FROM E'^[df][{]"code":"([^"\\\\]*)"')
  END AS failure_code,
  coalesce(octet_length(input), 0) AS input_bytes,
  coalesce(octet_length(outcome), 0) AS outcome_bytes
FROM semel_records;
