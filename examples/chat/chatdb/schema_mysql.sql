-- The chat's own tables in MariaDB: the same as schema_sqlite.sql. Every statement may
-- run again, so that any number of processes can start at once. Texts are compared byte
-- by byte, and IDs and keys have at most 255 characters.

create table if not exists users (
  id            bigint primary key auto_increment, -- never used twice; a rollback leaves a gap
  name          varchar(255) not null,          -- as it is shown
  name_key      varchar(255) not null unique,   -- folded: names that differ only in case are one
  password_hash varchar(255) not null,          -- argon2id with its parameters
  created_at    bigint not null,                -- microseconds since 1970
  sign_up_key   varchar(255) unique             -- only when the records live in another database
) default charset utf8mb4 collate utf8mb4_nopad_bin;

-- The author of the server's own messages. No password has an empty hash.
set statement sql_mode = 'NO_AUTO_VALUE_ON_ZERO' for
  insert ignore into users (id, name, name_key, password_hash, created_at) values (0, 'Semel', 'semel', '', 0);

create table if not exists sessions (
  id         varchar(255) primary key,
  user_id    bigint not null references users (id),
  token_hash varbinary(64) not null unique,     -- SHA-256; the token itself is not kept
  device     varchar(255) not null,
  created_at bigint not null
) default charset utf8mb4 collate utf8mb4_nopad_bin;

create table if not exists groups (
  id           varchar(255) primary key,
  name         mediumtext not null,
  owner_id     bigint not null references users (id),
  created_at   bigint not null,
  last_seq     bigint not null default 0,       -- of the messages
  last_change  bigint not null default 0,       -- of everything that members see
  creation_key varchar(255),                    -- only when the records live in another database
  unique index groups_creation (owner_id, creation_key)
) default charset utf8mb4 collate utf8mb4_nopad_bin;

create table if not exists conversations (
  id       varchar(255) primary key,
  group_id varchar(255) not null unique references groups (id)
) default charset utf8mb4 collate utf8mb4_nopad_bin;

create table if not exists memberships (
  group_id varchar(255) not null references groups (id),
  user_id  bigint not null references users (id),
  joined   bigint not null,                     -- the group's change that made it; 1: with the group
  read_seq bigint not null default 0,           -- the last message that the member has read
  primary key (group_id, user_id)
) default charset utf8mb4 collate utf8mb4_nopad_bin;

create table if not exists messages (
  id          varchar(255) not null unique,
  group_id    varchar(255) not null references groups (id),
  seq         bigint not null,                  -- 1, 2, 3 … in each group
  changed     bigint not null,                  -- the group's change that wrote it last
  author_id   bigint not null references users (id),
  text        mediumtext not null,              -- empty: deleted
  created_at  bigint not null,
  edited_at   bigint,
  deleted     bigint not null default 0,        -- 1: deleted
  client_id   varchar(255) not null,            -- the key of the request, or empty
  sending_key varchar(255),                     -- only when the records live in another database
  primary key (group_id, seq),
  unique index messages_changed (group_id, changed),
  unique index messages_sending (author_id, sending_key)
) default charset utf8mb4 collate utf8mb4_nopad_bin;

create table if not exists boosts (
  charge_id  varchar(255) primary key,          -- a charge pays for one boost
  group_id   varchar(255) not null references groups (id),
  user_id    bigint not null references users (id),
  amount     bigint not null,                   -- in the currency's smallest unit
  currency   varchar(255) not null,
  created_at bigint not null,
  index boosts_group (group_id, created_at)
) default charset utf8mb4 collate utf8mb4_nopad_bin;

-- One row for each time a group was created, written in the same transaction. It has no
-- unique constraint on its contents on purpose: a group that is created twice has two
-- rows.
create table if not exists creations (
  id      bigint primary key auto_increment,    -- Galera needs a primary key
  owner   bigint not null,
  `key`   varchar(255) not null,
  attempt bigint not null
) default charset utf8mb4 collate utf8mb4_nopad_bin;

-- One row for each time a new member was welcomed, as creations has for groups.
create table if not exists welcomes (
  id       bigint primary key auto_increment,
  group_id varchar(255) not null,
  user_id  bigint not null,
  attempt  bigint not null
) default charset utf8mb4 collate utf8mb4_nopad_bin;

-- One row: a random ID, which all servers of the database share.
create table if not exists deployment (
  one int primary key check (one = 1),
  id  varchar(255) not null
) default charset utf8mb4 collate utf8mb4_nopad_bin;
