// Package sqlite keeps records in a SQLite database, in the same transactions as
// the domain's own rows.
//
// [Open] opens a database file with the settings that the store needs, by a
// driver without cgo. [New] makes a store of any *sql.DB over SQLite 3.42 or
// newer, whatever its driver. The tables come from package migrate/sqlite, or from the
// files of [Schema] run by a tool of your own.
//
// # One writer
//
// SQLite has one write lock for the whole database. A [Store] lets its own
// writers queue for it before they take a connection, so that a thousand of them
// hold none; give one database one Store. A caller that does not get it within two
// seconds gets Busy. An open transaction of [Store.Atomic] keeps every other
// writer out, of this process and of others, from its first statement to its
// end: keep handlers short. Readers go on meanwhile, on other connections, when
// the journal mode is WAL, as Open sets it; with a rollback journal a commit
// fails if another connection reads for longer than busy_timeout.
//
// Do not set SetMaxOpenConns(1), although that is common advice for SQLite: the store
// orders its writers by itself. With one connection, a handler that uses the database
// besides its transaction waits for itself until its context ends, and while any handler
// runs, calls of other keys cannot reach the database and get semel.ErrUnavailable.
//
// # What a handler must leave alone
//
// The *sql.Tx that a handler is given is the driver's own, so that prepared
// statements of the same *sql.DB can be used with it. It must not be committed or
// rolled back, also not as SQL; if it is, Atomic finds out what became of it,
// and fails with [ErrEnded].
//
// SQLite rolls a whole transaction back by itself when the disk is full, when
// reading or writing fails, and when a writing statement is interrupted by the
// end of its context. After such an error a handler must return: what it wrote
// next would be committed at once, statement by statement. Atomic detects this
// and never records an outcome for it; with a driver that can tell whether
// anything was committed, as the one of Open can, it also knows the verdict.
package sqlite
