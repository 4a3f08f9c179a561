-- The shop's own tables. They have no unique constraint on purpose: if an order
-- were paid or shipped twice, there would be two rows.

create table if not exists payments (
  order_id   text        not null,
  customer   text        not null,
  amount     bigint      not null, -- in the currency's smallest unit
  currency   text        not null,
  charge_id  text        not null, -- the payment service's name for the charge
  created_at timestamptz not null default now()
);
create index if not exists payments_order on payments (order_id);

create table if not exists shipments (
  order_id   text        not null,
  created_at timestamptz not null default now()
);
create index if not exists shipments_order on shipments (order_id);
