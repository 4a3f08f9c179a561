// Package postgres keeps records in a PostgreSQL database, in the same
// transactions as the domain's own rows.
//
// [New] makes a store of a *pgxpool.Pool over PostgreSQL 13 or newer, to which the
// pool must be connected as a primary. The tables come from migrate.Postgres, or
// from the files of [Schema] run by a tool of your own; they are found by the
// search_path. A handler's transaction is a pgx.Tx.
package postgres
