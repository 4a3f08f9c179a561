-- The chat's own tables in PostgreSQL: the same as schema_sqlite.sql. Every
-- statement may run again, and processes that start at once wait for each other.

select pg_advisory_xact_lock(7165065861825654388);

create table if not exists users (
  id         bigint generated always as identity primary key, -- never used twice; a rollback leaves a gap
  name       text   not null,
  token_hash bytea  not null unique,            -- SHA-256; the token itself is not kept
  created_at bigint not null                    -- microseconds since 1970
);

-- The author of the server's own messages. No token has an empty hash.
insert into users (id, name, token_hash, created_at) overriding system value values (0, 'Semel', '', 0)
  on conflict do nothing;

create table if not exists groups (
  id           text   primary key,
  name         text   not null,
  owner_id     bigint not null references users (id),
  created_at   bigint not null,
  creation_key text                             -- only when the records live in another database
);
create unique index if not exists groups_creation on groups (owner_id, creation_key)
  where creation_key is not null;

create table if not exists conversations (
  id       text primary key,
  group_id text not null unique references groups (id)
);

create table if not exists memberships (
  group_id text   not null references groups (id),
  user_id  bigint not null references users (id),
  founding bigint not null,                     -- 1: since the group was created
  primary key (group_id, user_id)
);
create index if not exists memberships_user on memberships (user_id);

create table if not exists messages (
  id          text   not null unique,
  group_id    text   not null references groups (id),
  seq         bigint not null,                  -- 1, 2, 3 … in each group
  author_id   bigint not null references users (id),
  text        text   not null,
  created_at  bigint not null,
  sending_key text,                             -- only when the records live in another database
  primary key (group_id, seq)
);
create unique index if not exists messages_sending on messages (author_id, sending_key)
  where sending_key is not null;

create table if not exists boosts (
  charge_id  text    primary key,               -- a charge pays for one boost
  group_id   text    not null references groups (id),
  user_id    bigint  not null references users (id),
  amount     bigint  not null,                  -- in the currency's smallest unit
  currency   text    not null,
  created_at bigint  not null
);
create index if not exists boosts_group on boosts (group_id, created_at);

-- One row for each time a group was created, written in the same transaction.
-- It has no unique constraint on purpose: a group that is created twice has two
-- rows.
create table if not exists creations (
  owner   bigint not null,
  key     text   not null,
  attempt bigint not null
);

-- One row for each time a new member was welcomed, as creations has for groups.
create table if not exists welcomes (
  group_id text   not null,
  user_id  bigint not null,
  attempt  bigint not null
);
