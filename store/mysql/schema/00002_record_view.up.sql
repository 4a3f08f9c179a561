-- What dashboards and SQL read: the records with readable columns, and nothing that
-- belongs to a caller. A user that may read the view needs no right on the tables,
-- because a view reads them with the rights of its creator.
--
-- Scope and key are hashes: the first twelve hexadecimal digits of the SHA-256 of the
-- salt and the value. The program semel shows the same ones. The salt keeps a list of
-- hashes from being compared with the hashes of guessed values.

CREATE TABLE IF NOT EXISTS semel_salt (
  one  TINYINT    NOT NULL PRIMARY KEY CHECK (one = 1), -- so that there is one row
  salt BINARY(32) NOT NULL
) ENGINE=InnoDB;

-- MariaDB 10.6 has no function for random bytes.
INSERT INTO semel_salt (one, salt)
VALUES (1, UNHEX(SHA2(CONCAT_WS('-', UUID(), RAND(), RAND(), RAND(), UTC_TIMESTAMP(6), CONNECTION_ID()), 256)))
ON DUPLICATE KEY UPDATE one = 1;

-- No expression in the view fails for any bytes: one damaged record must not make a dashboard
-- fail. Times are in UTC.
CREATE OR REPLACE VIEW semel_record_view AS
SELECT
  LOWER(HEX(id)) AS id,
  CONVERT(operation USING utf8mb4) AS operation,
  CASE state
    WHEN 1 THEN 'Pending' WHEN 2 THEN 'InProgress' WHEN 3 THEN 'InDoubt'
    WHEN 4 THEN 'Succeeded' WHEN 5 THEN 'Failed'
  END AS state,
  LEFT(SHA2(CONCAT((SELECT salt FROM semel_salt), scope), 256), 12) AS scope_hash,
  LEFT(SHA2(CONCAT((SELECT salt FROM semel_salt), k), 256), 12) AS key_hash,
  attempt,
  priority,
  tainted,
  TIMESTAMPADD(MICROSECOND, created, CAST('1970-01-01' AS DATETIME(6))) AS created,
  TIMESTAMPADD(MICROSECOND, changed, CAST('1970-01-01' AS DATETIME(6))) AS changed,
  CASE WHEN state = 1 THEN TIMESTAMPADD(MICROSECOND, due, CAST('1970-01-01' AS DATETIME(6))) END AS due,
  CASE WHEN state = 2 THEN TIMESTAMPADD(MICROSECOND, due, CAST('1970-01-01' AS DATETIME(6))) END AS lease_ends,
  TIMESTAMPADD(MICROSECOND, expires, CAST('1970-01-01' AS DATETIME(6))) AS expires,
  CASE WHEN state IN (3, 5) AND LEFT(outcome, 1) = 'd' THEN 1 ELSE 0 END AS dead_letter,
  CASE WHEN state IN (3, 5) AND LEFT(outcome, 1) IN ('d', 'f') AND JSON_VALID(CONVERT(SUBSTRING(outcome, 2) USING utf8mb4))
    THEN JSON_UNQUOTE(JSON_EXTRACT(CONVERT(SUBSTRING(outcome, 2) USING utf8mb4), '$.code'))
  END AS failure_code,
  COALESCE(LENGTH(input), 0) AS input_bytes,
  COALESCE(LENGTH(outcome), 0) AS outcome_bytes
FROM semel_records;
