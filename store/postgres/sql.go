package postgres

// The store's clock is the server's. Changes compare and write clock_timestamp(), which also
// advances within a transaction and while a statement waits. Reads use statement_timestamp(),
// the start of the statement, because PostgreSQL can search an index by it.
//
// IS NOT DISTINCT FROM compares a state where the planner must not use a partial index by
// state. While the statistics say that such an index is empty, the planner would choose it.

const (
	// The client computes remaining and elapsed times from the instants, which
	// costs a fraction of what it costs the server. Their bytes depend on no setting of
	// the session, and on no mode of the driver.
	columns = `id, state, attempt, owner, timestamptz_send(due), timestamptz_send(expires), timestamptz_send(created),
timestamptz_send(changed), timestamptz_send(clock_timestamp()), operation, scope, key, fingerprint, priority, tainted, input, outcome`

	// sqlLook reads one record within a handler's transaction, or a row of nulls,
	// and restores the setting that forces the index.
	sqlLook = `SELECT set_config('enable_seqscan', current_setting('semel.enable_seqscan'), true), ` + columns + `
FROM (VALUES (1)) AS always LEFT JOIN semel_records ON id = $1::uuid`

	sqlRecords = `SELECT ` + columns + ` FROM semel_records WHERE `
	sqlGetMany = sqlRecords + `id = ANY ($1::uuid[])`

	// sqlGetConfirmed makes the commit of its transaction wait for a standby if it shows
	// a final record, or one whose token has an owner of $2.
	sqlGetConfirmed = sqlGetMany + `
AND CASE WHEN state IN (4, 5) OR owner = ANY ($2::bigint[]) THEN ` + emit + ` IS NOT NULL ELSE true END`

	// What waits and what runs is found by an index each, so that neither is in
	// the other's way.
	sqlScanWaits  = sqlRecords + dueWaits + dueOf
	sqlScanLeases = sqlRecords + dueLeases + dueOf
	sqlScanDue    = `SELECT ` + columns + ` FROM (
(SELECT * FROM semel_records WHERE ` + dueWaits + ` ORDER BY due LIMIT $2::bigint + $3::bigint)
UNION ALL (SELECT * FROM semel_records WHERE ` + dueLeases + ` ORDER BY due LIMIT $2::bigint + $3::bigint)) AS due` + dueOf

	dueWaits  = `state = 1 AND due <= statement_timestamp() AND ($1::bytea = '' OR operation = $1::bytea)`
	dueLeases = `state = 2 AND due <= statement_timestamp() AND ($1::bytea = '' OR operation = $1::bytea)`
	dueOf     = `
ORDER BY due LIMIT $2::bigint OFFSET $3::bigint`

	// A list names its state, because the planner uses a partial index for no parameter.
	// The few waiting or running records among many others are found by an index of
	// their own and sorted. If they are many, the planner reads the records in the order
	// of their IDs.
	sqlScan           = sqlRecords + inScan
	sqlScanPending    = sqlRecords + `state = 1 AND ` + inScan
	sqlScanInProgress = sqlRecords + `state = 2 AND ` + inScan
	sqlScanInDoubt    = sqlRecords + `state = 3 AND ` + inScan
	sqlScanSucceeded  = sqlRecords + `state IS NOT DISTINCT FROM 4 AND ` + inScan
	sqlScanFailed     = sqlRecords + `state = 5 AND ` + inScan

	inScan = `($1::bytea = '' OR operation = $1::bytea) AND id > $4::uuid
ORDER BY id LIMIT $2::bigint OFFSET $3::bigint`

	sqlCounts = `SELECT operation, state, count(*),
count(*) FILTER (WHERE state IN (1, 2) AND due <= statement_timestamp()),
count(*) FILTER (WHERE ` + purgeable + ` AND tableoid <> ALL (ARRAY(
SELECT oid FROM pg_class JOIN pg_inherits ON inhrelid = oid WHERE inhparent = $1::text::regclass AND ` + dropped + `))),
count(*) FILTER (WHERE state IN (3, 5) AND substr(outcome, 1, 1) = '\x64'),
(extract(epoch FROM max(statement_timestamp() - changed)) * 1000000)::bigint
FROM semel_records GROUP BY operation, state ORDER BY operation, state`
)

const (
	// sqlDequeue goes from one priority to the next lower one only for as long as
	// it has too few, and reads nothing that is not due. What it finds is locked
	// until it is claimed, so that its token cannot change in between. It is not
	// joined but named, because a join may read the table, or a partition, whole.
	//
	// If an earlier call with the same owner has made claims that are current, it
	// returns them and claims nothing; with $5, its own commit then waits for a standby,
	// as the commit of new claims does. sqlDequeueOnce is sent before it, as a
	// statement of its own, because a call that waits for the earlier one must see
	// what that one has committed. An input that is null becomes empty, which reads
	// the same, so that the index of claims contains the record.
	sqlDequeue = `WITH earlier AS MATERIALIZED (` + claims + `owner = $3::bigint AND operation = $1::bytea
AND CASE WHEN $5::boolean THEN ` + emit + ` IS NOT NULL ELSE true END),
waiting (i) AS MATERIALIZED (
SELECT q.id FROM generate_series(4, -4, -1) AS level (p) CROSS JOIN LATERAL (
SELECT id FROM semel_records
WHERE state = 1 AND operation = $1::bytea AND priority = level.p AND due <= statement_timestamp() AND ` + free + `
ORDER BY due LIMIT $2::bigint FOR UPDATE SKIP LOCKED) q
WHERE NOT EXISTS (SELECT FROM earlier)
LIMIT $2::bigint),
made AS (
UPDATE semel_records SET state = 2, attempt = attempt + 1, owner = $3::bigint,
due = clock_timestamp() + $4::bigint * interval '1 microsecond', expires = NULL, changed = clock_timestamp(),
input = coalesce(input, '')
WHERE id = ANY (ARRAY(SELECT i FROM waiting)) AND state IS NOT DISTINCT FROM 1 AND due <= clock_timestamp()
RETURNING array_position(ARRAY(SELECT i FROM waiting), id)::bigint AS place, ` + columns + `)
TABLE made UNION ALL TABLE earlier ORDER BY priority DESC, place, id`

	// sqlDequeueOnce waits for the end of an earlier call with the same owner.
	sqlDequeueOnce = `SELECT pg_advisory_xact_lock($1::bigint)`

	// free is true if no transaction holds the advisory lock of the record, which Atomic
	// takes.
	free = `(SELECT CASE WHEN pg_try_advisory_lock_shared(n) THEN pg_advisory_unlock_shared(n) ELSE false END
FROM (SELECT ` + right + ` AS n OFFSET 0) AS r)`

	// right is the number of this lock: the last eight bytes of the ID.
	right = `('x' || encode(substring(uuid_send(id) FROM 9), 'hex'))::bit(64)::bigint`

	// sqlClaimed makes the commit of its transaction wait for a standby if it shows a
	// claim and $3 is true.
	sqlClaimed = claims + `owner = $1::bigint AND operation = $2::bytea
AND CASE WHEN $3::boolean THEN ` + emit + ` IS NOT NULL ELSE true END ORDER BY priority DESC, id`

	// claims repeats the condition of the index semel_dequeued.
	claims = `SELECT 0::bigint AS place, ` + columns + ` FROM semel_records
WHERE state IS NOT DISTINCT FROM 2 AND input IS NOT NULL AND `
)

// A change is one of three statements: a create, a move to another token, and a
// beat that moves nothing but the times. Their parameters are the ones of args.
const (
	sqlCreate = insert + firstValue + `$2::smallint` + otherValues

	firstValue = `
VALUES ($1::uuid, `
	otherValues = `, $3::integer, $4::bigint, ` +
		`clock_timestamp() + $5::bigint * interval '1 microsecond', clock_timestamp() + $6::bigint * interval '1 microsecond', ` +
		`clock_timestamp(), clock_timestamp(), $7::boolean, $8::bytea, $9::bytea, $10::bytea, $11::bytea, $12::smallint, $13::bytea, $14::bytea)`

	insert = `INSERT INTO semel_records
(id, state, attempt, owner, due, expires, created, changed, tainted, operation, scope, key, fingerprint, priority, input, outcome)`

	// insertInOrder inserts the rows of a query. With the columns in the order of the table,
	// the plan needs no step that reorders them.
	insertInOrder = `INSERT INTO semel_records
(id, owner, due, expires, created, changed, attempt, state, priority, tainted, operation, scope, key, fingerprint, input, outcome)`

	orNothing = ` ON CONFLICT (id) DO NOTHING`

	sqlMove = `UPDATE semel_records SET state = $6::smallint, attempt = $7::integer, owner = $8::bigint, ` +
		`due = clock_timestamp() + $9::bigint * interval '1 microsecond', ` +
		`expires = clock_timestamp() + $10::bigint * interval '1 microsecond', changed = clock_timestamp(), ` +
		`tainted = $11::boolean, input = coalesce($12::bytea, input), outcome = coalesce($13::bytea, outcome)` + current

	sqlBeat = `UPDATE semel_records SET due = clock_timestamp() + $6::bigint * interval '1 microsecond', ` +
		`expires = clock_timestamp() + $7::bigint * interval '1 microsecond'` + current

	current = `
WHERE id = $1::uuid AND state IS NOT DISTINCT FROM $2::smallint AND attempt = $3::integer AND owner = $4::bigint
AND (NOT $5::boolean OR due <= clock_timestamp())`
)

// The same changes for many records at once, from arrays. They are unnested in the list of
// columns, where PostgreSQL reads them side by side; in FROM it would copy each one first.
const (
	sqlCreateMany = insertInOrder + `
SELECT i, o, clock_timestamp() + d * interval '1 microsecond', clock_timestamp() + e * interval '1 microsecond',
clock_timestamp(), clock_timestamp(), a, s, p, t, op, sc, k, f, ip, oc
FROM (SELECT unnest($1::uuid[]), unnest($2::smallint[]), unnest($3::integer[]), unnest($4::bigint[]), unnest($5::bigint[]),
unnest($6::bigint[]), unnest($7::boolean[]), unnest($8::bytea[]), unnest($9::bytea[]), unnest($10::bytea[]), unnest($11::bytea[]),
unnest($12::smallint[]), unnest($13::bytea[]), unnest($14::bytea[]))
AS x (i, s, a, o, d, e, t, op, sc, k, f, p, ip, oc)` + orNothing

	sqlMoveMany = `UPDATE semel_records r SET state = x.s, attempt = x.a, owner = x.o,
due = clock_timestamp() + x.d * interval '1 microsecond', expires = clock_timestamp() + x.e * interval '1 microsecond',
changed = clock_timestamp(), tainted = x.t, input = coalesce(x.ip, r.input), outcome = coalesce(x.oc, r.outcome)
FROM (SELECT unnest($1::uuid[]), unnest($2::smallint[]), unnest($3::integer[]), unnest($4::bigint[]), unnest($5::boolean[]),
unnest($6::smallint[]), unnest($7::integer[]), unnest($8::bigint[]), unnest($9::bigint[]), unnest($10::bigint[]), unnest($11::boolean[]),
unnest($12::bytea[]), unnest($13::bytea[]))
AS x (i, fs, fa, fo, w, s, a, o, d, e, t, ip, oc)` + standMany

	sqlBeatMany = `UPDATE semel_records r SET
due = clock_timestamp() + x.d * interval '1 microsecond', expires = clock_timestamp() + x.e * interval '1 microsecond'
FROM (SELECT unnest($1::uuid[]), unnest($2::smallint[]), unnest($3::integer[]), unnest($4::bigint[]), unnest($5::boolean[]),
unnest($6::bigint[]), unnest($7::bigint[]))
AS x (i, fs, fa, fo, w, d, e)` + standMany

	standMany = `
WHERE r.id = x.i AND r.state IS NOT DISTINCT FROM x.fs AND r.attempt = x.fa AND r.owner = x.fo AND (NOT x.w OR r.due <= clock_timestamp())`
)

// returningID is the end of a statement for many records.
const returningID = ` RETURNING id`

// The last change of a transaction fails in the database if it is not applied: a create by
// the primary key, the others by a division by zero. A COMMIT in the same round trip is then
// a rollback. Before it, sqlSameTx fails, also by a division by zero, if this is not the
// transaction that the store began. For a create, one statement does both.
const (
	sqlSameTx    = `SELECT 1 / (pg_current_xact_id() = $1::text::xid8)::integer`
	sqlEndCreate = insert + firstValue + `$2::smallint / (pg_current_xact_id() = $15::text::xid8)::integer` + otherValues

	raising = `WITH made AS (`
	orRaise = ` RETURNING 1) SELECT 1 / count(*) FROM made`
)

const (
	// dropped selects, by the beginning of their names in $2, the partitions that are
	// dropped when they are old. Purge leaves their records to the drop.
	dropped = `starts_with(relname::text, $2::text)`

	purgeable = `expires <= statement_timestamp() AND state IN (1, 4, 5)`

	// sqlPurge repeats the condition for the locked row, which may have changed since it was
	// found.
	sqlPurge = `DELETE FROM semel_records WHERE id = ANY (ARRAY(
SELECT id FROM semel_records WHERE ` + purgeable + ` ORDER BY expires LIMIT $1::bigint FOR UPDATE SKIP LOCKED))
AND ` + purgeable

	// noting is the text that noted appends to a change: one statement makes the change and
	// stores the note, and stores it only if the change is applied.
	noting = ` RETURNING 1) INSERT INTO semel_notes
(id, from_state, from_attempt, from_owner, to_state, to_attempt, to_owner, actor, reason, created)
SELECT $%d::uuid, $%d::smallint, $%d::integer, $%d::bigint, $%d::smallint, $%d::integer, $%d::bigint,
coalesce($%d::bytea, ''), coalesce($%d::bytea, ''), clock_timestamp() FROM made ON CONFLICT DO NOTHING`

	// sqlNotes sorts what it has found, so that no index on that order is used for the search.
	sqlNotes = `SELECT from_state, from_attempt, from_owner, to_state, to_attempt, to_owner, actor, reason,
(extract(epoch FROM clock_timestamp() - created) * 1000000)::bigint
FROM (SELECT * FROM semel_notes WHERE id = $1::uuid OFFSET 0) AS found ORDER BY note`
)
