package sqlite

import "strings"

// now is the store's clock: SQLite's own, in microseconds with SQLite's precision
// of a millisecond. It is constant within a statement.
const now = `(CAST(unixepoch('subsec') * 1000 + 0.5 AS INTEGER) * 1000)`

// writeTime is the time in the statement's first argument, which a batch reads once, or
// now if the argument is null.
const writeTime = `coalesce(?1, ` + now + `)`

const (
	sqlNow = `SELECT ` + now

	columns = `id, state, attempt, owner, due - ` + now + `, expires - ` + now + `, ` +
		now + ` - created, ` + now + ` - changed,
operation, scope, key, fingerprint, priority, tainted, input, outcome`

	sqlGet = `SELECT ` + columns + ` FROM semel_records WHERE id = ?`

	// sqlGetMany reads getMany records. A duplicate ID is read once.
	sqlGetMany = `SELECT ` + columns + ` FROM semel_records WHERE id IN (
?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

	// Pending and InProgress records are separate in one index, so that neither
	// slows a scan of the other.
	sqlScanWaits  = `SELECT ` + columns + ` FROM semel_records WHERE ` + dueWaits + dueOf
	sqlScanLeases = `SELECT ` + columns + ` FROM semel_records WHERE ` + dueLeases + dueOf
	sqlScanDue    = `SELECT ` + columns + `, due FROM semel_records WHERE ` + dueWaits + `
UNION ALL SELECT ` + columns + `, due FROM semel_records WHERE ` + dueLeases + dueOf

	dueWaits  = `state = 1 AND due <= ` + now + ` AND (? = 0 OR operation = ?)`
	dueLeases = `state = 2 AND due <= ` + now + ` AND (? = 0 OR operation = ?)`
	dueOf     = `
ORDER BY due LIMIT ? OFFSET ?`

	sqlScan = `SELECT ` + columns + ` FROM semel_records
WHERE id > ? AND (? = 0 OR state = ?) AND (? = 0 OR operation = ?)
ORDER BY id LIMIT ? OFFSET ?`

	// sqlScanRare repeats the condition of the partial index semel_rare, because
	// SQLite uses a partial index only then.
	sqlScanRare = `SELECT ` + columns + ` FROM semel_records
WHERE state IN (3, 5) AND state = ? AND id > ? AND (? = 0 OR operation = ?)
ORDER BY id LIMIT ? OFFSET ?`
)

// Dequeue searches priority by priority, so that it does not read records that are
// not due, and claims the records one by one, in order.
const (
	sqlWaiting = `SELECT id, attempt, owner FROM semel_records INDEXED BY semel_queue
WHERE state = 1 AND operation = ? AND priority = ? AND due <= ` + now + ` ORDER BY due LIMIT ?`

	sqlClaim = `UPDATE semel_records SET state = 2, attempt = attempt + 1, owner = ?, due = ` + now + ` + ?,
expires = NULL, changed = ` + now + ` WHERE id = ? AND state = 1 AND attempt = ? AND owner = ? AND due <= ` + now + `
RETURNING ` + columns

	// sqlClaimed reads all leases; there are as many as running attempts.
	sqlClaimed = `SELECT ` + columns + ` FROM semel_records
WHERE state = 2 AND due IS NOT NULL AND owner = ? AND operation = ? ORDER BY due`
)

// A change is one of three statements: a create, a move to another token, and a
// heartbeat, which moves the times only. As the last change of a transaction each
// is made only if the transaction's mark exists. The most frequent changes have
// shorter statements, because every argument costs time: "open" is the first claim
// of a record, and "end" is the end by the attempt's own leader.
const (
	marked = `EXISTS (SELECT 1 FROM semel_guard WHERE mark = ?)`

	into = `INTO semel_records
(created, changed, state, attempt, owner, due, tainted, id, operation, scope, key, fingerprint, priority, expires, input, outcome)
`
	whole = writeTime + `, ` + writeTime + `, ?, ?, ?, ` + writeTime + ` + ?, ?, ?, ?, ?, ?, coalesce(?, x''), ?, ` +
		writeTime + ` + ?, coalesce(?, x''), coalesce(?, x'')`
	opened    = writeTime + `, ` + writeTime + `, 2, 1, ?, ` + writeTime + ` + ?, 0, ?, ?, ?, ?, coalesce(?, x''), 0, NULL, x'', x''`
	orNothing = ` ON CONFLICT (id) DO NOTHING`

	move = `UPDATE semel_records SET changed = ` + writeTime + `, state = ?, attempt = ?, owner = ?, due = ` + writeTime + ` + ?,
expires = ` + writeTime + ` + ?, tainted = ?, input = CASE WHEN ? THEN coalesce(?, x'') ELSE input END,
outcome = CASE WHEN ? THEN coalesce(?, x'') ELSE outcome END` + current + ifDue

	end = `UPDATE semel_records SET changed = ` + writeTime + `, state = ?, due = NULL,
expires = ` + writeTime + ` + ?, tainted = 0, outcome = coalesce(?, x'') WHERE id = ? AND state = 2 AND attempt = ? AND owner = ?`

	beat = `UPDATE semel_records SET due = ` + writeTime + ` + ?, expires = ` + writeTime + ` + ?` + current + ifDue

	current = ` WHERE id = ? AND state = ? AND attempt = ? AND owner = ?`
	ifDue   = ` AND (NOT ? OR coalesce(due, 0) <= ` + writeTime + `)`

	sqlCreate = `INSERT ` + into + `VALUES (` + whole + `)` + orNothing
	sqlMove   = move
	sqlBeat   = beat
	sqlOpen   = `INSERT ` + into + `VALUES (` + opened + `)` + orNothing
	sqlEnd    = end

	sqlLastCreate = `INSERT ` + into + `SELECT ` + whole + ` WHERE ` + marked + orNothing
	sqlLastMove   = move + ` AND ` + marked
	sqlLastBeat   = beat + ` AND ` + marked
	sqlLastOpen   = `INSERT ` + into + `SELECT ` + opened + ` WHERE ` + marked + orNothing
	sqlLastEnd    = end + ` AND ` + marked
)

const (
	// sqlLock takes the write lock and changes nothing. A transaction that began
	// without the lock must take it before it reads: otherwise its snapshot can
	// become outdated, and it never gets the lock.
	sqlLock = `DELETE FROM semel_guard WHERE mark = 0`

	// sqlMark takes the write lock, too.
	sqlMark = `INSERT INTO semel_guard (mark) VALUES (?)`

	// sqlUnmark is the last statement of a transaction, after the last change.
	// Neither statement uses changes(), because a goroutine that the handler left
	// behind may write in between.
	sqlUnmark = `DELETE FROM semel_guard WHERE mark = ?`

	sqlSave   = `SAVEPOINT semel_run`
	sqlKeep   = `RELEASE semel_run`
	sqlUndo   = `ROLLBACK TO semel_run`
	rollBack  = `ROLLBACK`
	purgeable = `expires <= ` + now + ` AND state IN (1, 4, 5)`

	// sqlPurge repeats the condition for the row that it removes.
	sqlPurge = `DELETE FROM semel_records WHERE id IN
(SELECT id FROM semel_records WHERE ` + purgeable + ` ORDER BY expires LIMIT ?) AND ` + purgeable

	sqlNote = `INSERT INTO semel_notes
(id, from_state, from_attempt, from_owner, to_state, to_attempt, to_owner, actor, reason, created)
SELECT ?, ?, ?, ?, ?, ?, ?, coalesce(?, x''), coalesce(?, x''), ` + now + ` WHERE true ON CONFLICT DO NOTHING`

	sqlNotes = `SELECT from_state, from_attempt, from_owner, to_state, to_attempt, to_owner, actor, reason, ` +
		now + ` - created FROM semel_notes WHERE id = ? ORDER BY note`
)

// verb names a prepared statement.
type verb int

const (
	verbGet verb = iota
	verbGetMany
	verbNow
	verbWaiting
	verbClaim
	verbClaimed
	verbCreate
	verbMove
	verbBeat
	verbOpen
	verbEnd
	verbLastCreate
	verbLastMove
	verbLastBeat
	verbLastOpen
	verbLastEnd
	verbOpenFew
	verbOpenMany
	verbLock
	verbMark
	verbUnmark
	verbSave
	verbKeep
	verbUndo
	verbPurge
	verbNote
	verbAnyWaits
	verbAnyExpired
	verbs
)

// texts returns the statement of each verb.
func texts() [verbs]string {
	return [verbs]string{
		verbGet: sqlGet, verbGetMany: sqlGetMany, verbNow: sqlNow,
		verbWaiting: sqlWaiting, verbClaim: sqlClaim, verbClaimed: sqlClaimed,
		verbCreate: sqlCreate, verbMove: sqlMove, verbBeat: sqlBeat, verbOpen: sqlOpen, verbEnd: sqlEnd,
		verbLastCreate: sqlLastCreate, verbLastMove: sqlLastMove, verbLastBeat: sqlLastBeat,
		verbLastOpen: sqlLastOpen, verbLastEnd: sqlLastEnd,
		verbOpenFew: openAll(openFew), verbOpenMany: openAll(openMany),
		verbLock: sqlLock, verbMark: sqlMark, verbUnmark: sqlUnmark,
		verbSave: sqlSave, verbKeep: sqlKeep, verbUndo: sqlUndo,
		verbPurge: sqlPurge, verbNote: sqlNote,
		verbAnyWaits: sqlAnyWaits, verbAnyExpired: sqlAnyExpired,
	}
}

// All writers share one lock, and waiting for it is not fair. So calls that often
// find nothing to do first look without the lock.
const (
	sqlAnyWaits = `SELECT EXISTS (SELECT 1 FROM semel_records INDEXED BY semel_queue
WHERE state = 1 AND operation = ? AND priority IN (-4, -3, -2, -1, 0, 1, 2, 3, 4) AND due <= ` + now + `)`

	sqlAnyExpired = `SELECT EXISTS (SELECT 1 FROM semel_records WHERE ` + purgeable + `)`
)

// First claims of a batch are made by one statement, openMany or openFew at a time:
// half of a statement's cost does not depend on its rows.
const (
	openMany = 16
	openFew  = 4
)

// openAll is the statement that creates n records, in a transaction that has read
// the time. It does not change existing records. If SQLite refuses a record,
// earlier records of the statement are not undone (OR FAIL), because undoing would
// require a copy of every page.
func openAll(n int) string {
	const one = `(?1, ?1, 2, 1, ?, ?1 + ?, 0, ?, ?, ?, ?, coalesce(?, x''), 0, NULL, x'', x'')`
	return `INSERT OR FAIL ` + into + `VALUES ` + strings.Repeat(one+", ", n-1) + one + orNothing
}
