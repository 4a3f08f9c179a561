-- An index of the running attempts by owner. A repeated dequeue looks for the claims that
-- an earlier one with its owner has made, and so does every first one. The condition is
-- not written as that of semel_leases: searches for expired leases must not use this
-- index, which can seem to cost nothing while the statistics say that it is empty.

CREATE INDEX semel_dequeued ON semel_records (owner) WHERE state IS NOT DISTINCT FROM 2;
