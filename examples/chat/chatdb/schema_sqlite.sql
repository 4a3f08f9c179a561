-- The chat's own tables in SQLite. Every statement may run again, so that any number of
-- processes can start at once.

create table if not exists users (
  id            integer primary key autoincrement, -- in sequence, never used twice
  name          text    not null,               -- as it is shown
  name_key      text not null unique,     -- folded: names that differ only in case are one
  password_hash text    not null,               -- argon2id with its parameters
  created_at    integer not null,               -- microseconds since 1970
  sign_up_key   text    unique                  -- only when the records live in another database
);

-- The author of the server's own messages. No password has an empty hash.
insert into users (id, name, name_key, password_hash, created_at) values (0, 'Semel', 'semel', '', 0)
  on conflict do nothing;

create table if not exists sessions (
  id         text    primary key,
  user_id    integer not null references users (id),
  token_hash blob    not null unique,           -- SHA-256; the token itself is not kept
  device     text    not null,
  created_at integer not null
);
create index if not exists sessions_user on sessions (user_id);

create table if not exists groups (
  id           text    primary key,
  name         text    not null,
  owner_id     integer not null references users (id),
  created_at   integer not null,
  last_seq     integer not null default 0,      -- of the messages
  last_change  integer not null default 0,      -- of everything that members see
  creation_key text                             -- only when the records live in another database
);
create unique index if not exists groups_creation on groups (owner_id, creation_key)
  where creation_key is not null;

create table if not exists conversations (
  id       text primary key,
  group_id text not null unique references groups (id)
);

create table if not exists memberships (
  group_id text    not null references groups (id),
  user_id  integer not null references users (id),
  joined   integer not null,                    -- the group's change that made it; 1: with the group
  read_seq integer not null default 0,          -- the last message that the member has read
  primary key (group_id, user_id)
) without rowid;
create index if not exists memberships_user on memberships (user_id);

create table if not exists messages (
  id          text    not null unique,
  group_id    text    not null references groups (id),
  seq         integer not null,                 -- 1, 2, 3 … in each group
  changed     integer not null,                 -- the group's change that wrote it last
  author_id   integer not null references users (id),
  text        text    not null,                 -- empty: deleted
  created_at  integer not null,
  edited_at   integer,
  deleted     integer not null default 0,       -- 1: deleted
  client_id   text    not null,                 -- the key of the request, or empty
  sending_key text,                             -- only when the records live in another database
  primary key (group_id, seq)
);
create unique index if not exists messages_changed on messages (group_id, changed);
create unique index if not exists messages_sending on messages (author_id, sending_key)
  where sending_key is not null;

create table if not exists boosts (
  charge_id  text    primary key,               -- a charge pays for one boost
  group_id   text    not null references groups (id),
  user_id    integer not null references users (id),
  amount     integer not null,                  -- in the currency's smallest unit
  currency   text    not null,
  created_at integer not null
);
create index if not exists boosts_group on boosts (group_id, created_at);

-- One row for each time a group was created, written in the same transaction.
-- It has no unique constraint on purpose: a group that is created twice has two
-- rows.
create table if not exists creations (
  owner   integer not null,
  key     text    not null,
  attempt integer not null
);

-- One row for each time a new member was welcomed, as creations has for groups.
create table if not exists welcomes (
  group_id text    not null,
  user_id  integer not null,
  attempt  integer not null
);

-- One row: a random ID, which all servers of the database share.
create table if not exists deployment (
  one integer primary key check (one = 1),
  id  text    not null
);
