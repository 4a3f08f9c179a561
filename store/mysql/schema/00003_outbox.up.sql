-- Events that transactions append and a relay publishes. The names of the columns are
-- those of Debezium's outbox event router. seq is the position. An event of a parked
-- aggregate that was set aside has the lane -1 - lane. Texts are compared byte for byte,
-- and end in no space, because this collation ignores one.

CREATE TABLE IF NOT EXISTS semel_outbox (
  seq           BIGINT       NOT NULL AUTO_INCREMENT PRIMARY KEY,
  id            CHAR(36)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL,  -- a UUID
  lane          SMALLINT     NOT NULL,                                        -- 0 to 63, by a digest of the aggregate
  aggregatetype VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, -- the topic
  aggregateid   VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  type          VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  payload       LONGBLOB     NOT NULL,
  headers       LONGTEXT     CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, -- a JSON object
  created       BIGINT       NOT NULL,                                        -- microseconds since 1970
  KEY semel_outbox_lane (lane, seq)
) ENGINE=InnoDB;

-- Aggregates whose first event could not be published.
CREATE TABLE IF NOT EXISTS semel_outbox_parked (
  aggregatetype VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  aggregateid   VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  lane          SMALLINT     NOT NULL,                                        -- 0 to 63
  seq           BIGINT       NOT NULL,                                        -- of the event that could not be published
  id            CHAR(36)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  type          VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  failures      INT          NOT NULL,
  reason        LONGTEXT     CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, -- the last error
  parking       SMALLINT     NOT NULL CHECK (parking BETWEEN 1 AND 3),        -- parked; to be redriven; the same without the event
  created       BIGINT       NOT NULL,
  PRIMARY KEY (aggregatetype, aggregateid)
) ENGINE=InnoDB;
