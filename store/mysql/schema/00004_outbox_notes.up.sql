-- How often an event has failed, so that relays that restart count on. MySQL does not know
-- IF NOT EXISTS here, and ignores this comment.

ALTER TABLE semel_outbox ADD COLUMN /*M! IF NOT EXISTS */ failures INT NOT NULL DEFAULT 0;

-- Operators' decisions on parked aggregates. They are kept for ever.
CREATE TABLE IF NOT EXISTS semel_outbox_notes (
  note          BIGINT       NOT NULL AUTO_INCREMENT PRIMARY KEY,
  aggregatetype VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  aggregateid   VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  id            CHAR(36)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL, -- the event that could not be published
  type          VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  parking       SMALLINT     NOT NULL CHECK (parking BETWEEN 2 AND 3),       -- redriven; the same without the event
  actor         LONGBLOB     NOT NULL,
  reason        LONGBLOB     NOT NULL,
  created       BIGINT       NOT NULL
) ENGINE=InnoDB;
