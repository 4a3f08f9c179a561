// Package mysql keeps records in a MariaDB database, in the same transactions as the
// application's own rows. MariaDB 10.6 or newer is needed. MySQL 8 is supported by its
// documented differences, which are not tested.
//
// [Open] opens a database, and [New] makes a store of it. The tables come from package
// migrate/mysql, or from the files of [Schema] that another tool runs. The transaction
// that a handler receives is a *sql.Tx of the database.
//
// # Connections
//
// A handler's transaction occupies a connection of the application's pool from its
// begin to its end. For everything else the store has a pool of its own, of at most 16
// connections with the same configuration, so that a pool that handlers occupy delays
// no claim. Their lock waits, isolation level and sql_mode are the store's.
//
// A beginning and an end of a handler's transaction are one round trip each: a compound
// statement (BEGIN NOT ATOMIC) on MariaDB. MySQL has none outside of stored procedures
// and gets the statements one by one. Multiple statements in one text are never needed,
// so that an injected second statement stays an error.
//
// # Errors that a handler ignores
//
// A deadlock rolls a whole MySQL transaction back, and the server would commit the
// following statements one by one. The connections of [Open] refuse such statements, in
// every transaction, until the transaction is rolled back. Commit then fails. A lock wait that takes too
// long undoes its statement only. Within [Store.Atomic] it prevents the commit all the
// same, unless the handler goes back to a savepoint, because a handler that ignores the
// error has not done what it should.
//
// # A handler that ends its transaction
//
// Commit and Rollback of the *sql.Tx are refused and roll back. A text COMMIT or
// ROLLBACK, and each statement with an implicit commit such as CREATE TABLE, ends the
// transaction. The savepoint that the store made at its beginning is then gone, and
// [Store.Atomic] fails with [ErrEnded]. A row in the table semel_guard shows whether the
// transaction was committed; the verdict is Unknown if it was not, because later
// statements may have been.
//
// # Locks
//
// A Swap waits for at most a few hundredths of a second for a record that another
// transaction has locked; the shortest limit of MySQL is one second. With hold, Atomic locks
// the record's row, or, if there is no record, inserts its ID into semel_guard.
//
// # Isolation
//
// Atomic's transactions are read committed. [Store.SwapTx] works in transactions of the
// application at every level.
package mysql
