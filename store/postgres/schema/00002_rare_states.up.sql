-- An index of the records that an operator lists, InDoubt and Failed ones, so that a few
-- of them among millions are found without reading the table. Records in other states
-- are not in it: a claim or a success does not write to it.

CREATE INDEX semel_rare ON semel_records (state, id) WHERE state IN (3, 5);
