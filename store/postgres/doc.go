// Package postgres keeps records in a PostgreSQL database, in the same
// transactions as the domain's own rows.
//
// [New] makes a store of a *pgxpool.Pool that leads to the primary of PostgreSQL
// 13 or newer. The tables come from migrate.Postgres, or from the files of
// [Schema] run by a tool of your own. They are found once, at the first call, by
// the search_path that the pool's connections have then; from then on they are
// named with their schema. The transaction that a handler is given is a pgx.Tx.
//
// # Connections
//
// A handler's transaction has a connection from its begin to its end, and at most
// all but one of the pool's are used for that. Who comes later waits without one.
// Make the pool as large as the number of handlers that are to run at once, and
// one more; pgx makes it small (pool_max_conns). It must be two at least.
//
// While there is much to record, the store opens connections of its own beside the
// pool's, four at most ([Options].MaxSessions): they have been told once how statements
// are to be planned and how long to wait, and no handler has them. They are closed a
// second or two after they were used last, and after the pool was closed. Where the server, the
// database or the role has a limit of connections, leave room for them: none is opened
// that would leave too few for the pool, but other processes may come later.
//
// What a handler sets for its transaction, by SET LOCAL, is over when that is: its
// search_path does not change where its record goes. But after SET LOCAL ROLE it is
// that role which writes the record: it must be allowed to insert into and to update
// semel_records, or the transaction fails with nothing committed. What a handler
// sets by SET without LOCAL stays on the connection when it is committed, and the
// next transaction on it has it too. The store does not reset connections: behind
// a pooler that would be another's, and it would cost a round trip. Give the pool
// an AfterRelease that does, if your handlers need it.
//
// Whoever asks for a record that an open transaction holds is told Busy after a
// tenth of a second at most, and waits outside the database. The right to a
// record within [Store.Atomic] is an advisory lock of one 64-bit number, held to
// the end of the transaction; an application that takes advisory locks of its own
// by random 64-bit numbers is unlikely to meet one.
//
// # Statements that are known beforehand
//
// semel.DoBatch hands its statements over as a *pgx.Batch. [Store.AtomicBatch] sends
// the record, the statements and the commit in one round trip, which is a transaction
// by itself when all of them only read and write rows: then it has the session's
// default isolation, and otherwise begins one as all others do. With callbacks in the
// batch the COMMIT waits for these, so that they can still refuse. What the result is
// has to be known without the database: draw keys yourself, or use DoTx.
//
// # A process that stops
//
// A handler that stands still holds its locks. The server ends its transaction
// when it has sent nothing for 30 seconds, and a statement of it after 30 seconds,
// or after 10 of waiting for a lock; [Options] change that. These settings are of
// the transaction only, as all that the store sets is.
//
// # A goroutine that goes on
//
// A goroutine that a handler leaves behind, as http.TimeoutHandler does, gets
// [ErrEnded] from the transaction once the handler has returned. A call of it that
// is under way then has its connection broken, and the transaction is not
// committed. The transaction is for one call at a time, as every pgx.Tx is. What is
// done by its Conn and its LargeObjects is not guarded: they must not be used any
// more when the handler has returned.
//
// # A handler that ends its transaction
//
// Commit and Rollback are refused, but SQL can end a transaction too. What a
// handler has so ended is asked after by the number of the transaction: the error
// is [ErrEnded] and store.ErrTxEndedByHandler, and the verdict is what the server says, or
// Unknown where other things may have been committed after a ROLLBACK. When the
// connection is lost, the server is asked only if the handler has sent something
// that may have ended the transaction, for ten seconds at most: otherwise it is
// certain that nothing was committed. It may have crashed meanwhile, and given the
// number out again: after a loss the verdict is NotCommitted or Unknown.
//
// # PgBouncer
//
// The store needs no session beyond a transaction, and works behind PgBouncer in
// transaction mode, if the pool sends its statements so that they do not need one
// either: with default_query_exec_mode=exec or cache_describe in the address, or
// pgx.QueryExecModeExec or pgx.QueryExecModeCacheDescribe as the
// DefaultQueryExecMode of its configuration. The mode is the handler's statements'
// too. In exec mode each call is one round trip from the first on, but pgx must
// know the types of parameters by their Go types; cache_describe asks the server
// for them once. The default mode fails there, because it prepares statements.
//
// # Other unique keys
//
// A unique key other than that of IDs that a record meets is an error for who asks: one that was added
// to semel_records, or that of a table which a trigger writes. In its schema all tables
// are the store's whose names begin with semel_records.
//
// # What is certain
//
// A transaction counts as not committed only when no COMMIT was sent, or when the
// server has said, by an error on the package's list, that it has rolled back. A
// connection that is lost before COMMIT is answered, a session that the server
// ends, and the passing of the bound on COMMIT leave the verdict unknown; the
// engine then finds out by a change of the same record. A connection in an unknown
// state is closed. A trip that is a transaction by itself commits at its end, so no
// answer before that end proves it.
//
// With synchronous replication, COMMIT waits for a standby after it is done on the
// primary. When that takes longer than the bound of ten seconds, the store gives up
// waiting and asks what stands, and the primary answers that it is committed: as
// PostgreSQL tells it to everybody from then on. Committed means on the primary
// then, and a failover to a standby that never had it loses it, record and effect
// together. Where that matters, watch for standbys that lag by more than a few
// seconds, and fail over only to one that has everything. With synchronous_commit
// off, not even a crash of the primary is survived: Capabilities reports that, and the
// engine rejects the store unless its options accept the loss.
//
// # Isolation
//
// Everything works at read committed, which the transactions ask for themselves,
// whatever the session's default is, except for the batches said above. [Options] can ask for a higher level in
// inline transactions. A transaction that PostgreSQL gives up then in favour of
// others, as at any level after a deadlock, fails with store.ErrConflict: nothing
// was committed, and it may be run again whole.
package postgres
