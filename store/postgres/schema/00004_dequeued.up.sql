-- An index of the running attempts by owner. A repeated dequeue looks for the claims that
-- an earlier one with its owner has made, and so does every first one.

CREATE INDEX semel_dequeued ON semel_records (owner) WHERE state = 2;
