-- What was charged, a row for each time. It has no unique constraint on purpose:
-- a customer who was charged twice would have two rows here.

create table if not exists charges (
  id         text    not null,
  merchant   text    not null,
  amount     integer not null, -- in the currency's smallest unit
  currency   text    not null,
  reference  text    not null, -- the merchant's own name for it
  created_at integer not null  -- microseconds since 1970
);
create index if not exists charges_reference on charges (merchant, reference);
