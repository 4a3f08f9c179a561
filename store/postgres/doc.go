// Package postgres keeps records in a PostgreSQL database, in the same transactions as
// the application's own rows.
//
// [New] makes a store of a *pgxpool.Pool that is connected to the primary of PostgreSQL
// 13 or newer. The tables come from package migrate/postgres, or from the files of [Schema] that
// another tool runs. The first call finds them by the search_path of the pool's
// connections; later statements name them with their schema. The transaction that a
// handler receives is a pgx.Tx.
//
// # Package database/sql
//
// [NewSQL] makes the same store of a *sql.DB over github.com/jackc/pgx/v5/stdlib; handlers
// then receive a *sql.Tx, which GORM, ent, bun, sqlx and sqlc accept. What is said below about a
// pgx.Tx and a pool applies to it too, except that the store opens no connections of its
// own. The store's statements do not pass through database/sql, which sends a statement
// again if the driver reports that it was not sent.
//
// # Connections
//
// A handler's transaction occupies a connection from its begin to its end. At most all
// but one of the pool's connections are used for that; further callers wait without one.
// Make the pool larger by one than the number of handlers that run at once
// (pool_max_conns; pgx's default is small). It must have at least two connections.
//
// While there is much to record, the store has a second pool of at most four connections
// ([Options].MaxSessions), with the configuration of the first one. Their settings for
// planning and lock waits are made once, and no handler uses them. The second pool is
// closed after a second or two without use, and after the first one was closed. If the
// server, the database or the role
// limits connections, leave room for them: the store opens none that would leave too few
// for the pool, but other processes may connect later.
//
// A handler's SET LOCAL ends with its transaction: its search_path does not change where
// its record is written. But after SET LOCAL ROLE that role writes the record: it must be
// allowed to insert into and update semel_records, or the transaction fails with nothing
// committed. A handler's SET without LOCAL stays on the connection after the commit, and
// applies to the next transaction there. The store does not reset connections: behind a
// pooler it would reset another one, and it would cost a round trip. If your handlers use
// SET, give the pool an AfterRelease that resets.
//
// A caller of a record that an open transaction holds gets Busy after at most a tenth of
// a second, and waits outside of the database. The exclusive right to a record within
// [Store.Atomic] is an advisory lock on a 64-bit number, held to the end of the
// transaction. An application with its own advisory locks on random 64-bit numbers is
// unlikely to use the same number.
//
// # Statements that are known beforehand
//
// semel.DoBatch passes its statements as a *pgx.Batch. [Store.AtomicBatch] sends the
// begin, the record, the statements and the commit in one round trip. If the batch has
// callbacks, the COMMIT waits for them, so that they can still refuse. The result must be
// known without the database: generate keys in the program, or use DoTx.
//
// # A process that stops
//
// A stopped handler holds its locks. The server ends its transaction if it sends nothing
// for 30 seconds, and a statement after 30 seconds, or after 10 seconds of waiting for a
// lock; [Options] change these limits. Like all settings of the store they apply to the
// transaction only.
//
// # An abandoned goroutine
//
// A goroutine that a handler leaves behind, as http.TimeoutHandler does, gets [ErrEnded]
// from the transaction after the handler has returned. If one of its calls is running at
// that moment, its connection is closed, and the transaction is not committed. Like every
// pgx.Tx, the transaction supports one call at a time. Calls on its Conn and its
// LargeObjects are not guarded: do not use them after the handler has returned.
//
// # A handler that ends its transaction
//
// Commit and Rollback are refused, but SQL can end a transaction, too. The store then asks
// the server how the transaction ended, by its number: the error is [ErrEnded] and
// store.ErrTxEndedByHandler, and the verdict is the server's answer, or Unknown if other
// statements may have been committed after a ROLLBACK. After the loss of a connection the
// server is asked, for at most ten seconds, only if the handler has sent a statement that
// may have ended the transaction, or has used its Conn or its LargeObjects; otherwise
// nothing was committed. The server may have
// crashed meanwhile and reused the number, so after a loss the verdict is NotCommitted or
// Unknown.
//
// # PgBouncer
//
// The store needs no session beyond a transaction. It works behind PgBouncer in
// transaction mode if the pool's statements need no session either: with
// default_query_exec_mode=exec or cache_describe in the URL, or pgx.QueryExecModeExec or
// pgx.QueryExecModeCacheDescribe as the DefaultQueryExecMode of its configuration. The
// mode applies to the handlers' statements, too. In exec mode every call is one round
// trip, but pgx must know the types of parameters by their Go types; cache_describe asks
// the server for them once. The default mode fails there, because it prepares statements.
//
// # Other unique keys
//
// A record that violates a unique key other than that of its ID is an error for the
// caller: a key that was added to semel_records, or that of a table that a trigger
// writes. In the store's schema, all tables whose names begin with semel_records are its.
//
// # What is certain
//
// A transaction counts as not committed only if no COMMIT was sent, or if the server has
// reported, by an error of the package's list, that it has rolled back. After the loss of
// a connection before the reply to COMMIT, after the end of a session by the server, and
// after the time limit of COMMIT the verdict is Unknown; the engine then finds out by a
// change of the same record. A connection in an unknown state is closed.
//
// With synchronous_commit off, records do not even survive a crash of the primary:
// Capabilities reports that, and the engine rejects the store unless its options accept
// the loss.
//
// # Failover
//
// With synchronous replication, COMMIT waits until a standby has the transaction on its
// disk. The records then survive a failover: no change that was reported as applied, no
// Committed and no final record that was shown is lost, if the operator promotes a standby
// that has all confirmed commits. The standby's disk must be safe too. Configure
//
//	synchronous_standby_names = 'ANY 1 (s1, s2)'
//	synchronous_commit = on
//
// and make the pool from a configuration that was passed to [WatchReplication]. Give it all
// servers and target_session_attrs=read-write, so that it follows the primary.
// Capabilities then reports store.Failover.
//
// While no standby confirms, nothing is reported: after the store's time limits a change
// is an error and a transaction is Unknown. The driver's cancellation ends the server's
// wait, which makes the change visible although no standby has it. So a call that finds a
// change applied, or that shows a final record, writes an empty message to the log in its
// own transaction, and answers only after its commit, for which the server waits in the
// same way. Other calls, and servers without standbys, do not pay for that. The handler's
// own rows are visible during such a time, as those of every program are.
//
// # Isolation
//
// Everything works at read committed, which the transactions set themselves. [Options]
// can set a higher level for inline transactions. A transaction that PostgreSQL then
// aborts because of a conflict, as at any level after a deadlock, fails with
// store.ErrConflict: nothing was committed, and the whole transaction may run again.
package postgres
