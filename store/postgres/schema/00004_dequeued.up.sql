-- An index of the claims of queued records by owner. A repeated dequeue looks for the claims
-- that an earlier one with its owner has made, and so does every first one. A dequeued
-- record always has an input, so that the claim of a call does not write to this index.
-- The condition is not written as that of semel_leases: searches for expired leases must
-- not use this index, which can seem to cost nothing while the statistics say that it is
-- empty.

CREATE INDEX semel_dequeued ON semel_records (owner) WHERE state IS NOT DISTINCT FROM 2 AND input IS NOT NULL;
