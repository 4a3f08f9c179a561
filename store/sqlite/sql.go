package sqlite

// now is the store's clock: SQLite's own, in microseconds, as exact as SQLite
// has it (a millisecond). It is the same in all of one statement.
const now = `(CAST(unixepoch('subsec') * 1000 + 0.5 AS INTEGER) * 1000)`

const (
	columns = `id, state, attempt, owner, due - ` + now + `, expires - ` + now + `, ` +
		now + ` - created, ` + now + ` - changed,
operation, scope, key, fingerprint, priority, tainted, input, outcome`

	sqlGet = `SELECT ` + columns + ` FROM semel_records WHERE id = ?`

	// What waits and what runs is found by an index each, so that neither is in
	// the other's way.
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
)

// Dequeue looks for what waits priority by priority, so that what is not due is
// not read, and claims the records one by one, so that they come in order.
const (
	sqlWaiting = `SELECT id, attempt, owner FROM semel_records INDEXED BY semel_queue
WHERE state = 1 AND operation = ? AND priority = ? AND due <= ` + now + ` ORDER BY due LIMIT ?`

	sqlClaim = `UPDATE semel_records SET state = 2, attempt = attempt + 1, owner = ?, due = ` + now + ` + ?,
expires = NULL, changed = ` + now + ` WHERE id = ? AND state = 1 AND attempt = ? AND owner = ? AND due <= ` + now + `
RETURNING ` + columns

	// sqlClaimed goes through all leases, of which there are as many as runs.
	sqlClaimed = `SELECT ` + columns + ` FROM semel_records
WHERE state = 2 AND owner = ? AND operation = ? ORDER BY due`
)

// A change is one of three statements: a create, a move to another token, and a
// beat that moves nothing but the times. As the last of a transaction each is
// made only while the transaction's mark is there.
const (
	marked = `EXISTS (SELECT 1 FROM semel_guard WHERE mark = ?)`

	create = `INSERT INTO semel_records
(state, attempt, owner, due, expires, tainted, input, outcome, id, operation, scope, key, fingerprint, priority, created, changed)
SELECT ?, ?, ?, ` + now + ` + ?, ` + now + ` + ?, ?, coalesce(?, x''), coalesce(?, x''),
?, ?, ?, ?, coalesce(?, x''), ?, ` + now + `, ` + now + ` WHERE `
	orNothing = ` ON CONFLICT (id) DO NOTHING`

	move = `UPDATE semel_records SET state = ?, attempt = ?, owner = ?, due = ` + now + ` + ?, expires = ` + now + ` + ?,
tainted = ?, input = CASE WHEN ? THEN coalesce(?, x'') ELSE input END,
outcome = CASE WHEN ? THEN coalesce(?, x'') ELSE outcome END, changed = ` + now + stands

	beat = `UPDATE semel_records SET due = ` + now + ` + ?, expires = ` + now + ` + ?` + stands

	stands = ` WHERE id = ? AND state = ? AND attempt = ? AND owner = ? AND (NOT ? OR coalesce(due, 0) <= ` + now + `)`

	sqlCreate = create + `true` + orNothing
	sqlMove   = move
	sqlBeat   = beat

	sqlLastCreate = create + marked + orNothing
	sqlLastMove   = move + ` AND ` + marked
	sqlLastBeat   = beat + ` AND ` + marked
)

const (
	// sqlLock takes the write lock and changes nothing. A transaction that
	// began without it must do so first: one that reads first can lose its
	// snapshot, and then never gets the lock.
	sqlLock = `DELETE FROM semel_guard WHERE mark = 0`

	// sqlMark takes the write lock too.
	sqlMark = `INSERT INTO semel_guard (mark) VALUES (?)`

	// sqlUnmark is the last statement of a transaction, after a last change that
	// was made. Neither asks changes() for that: a goroutine that the handler
	// left behind may write in between.
	sqlUnmark = `DELETE FROM semel_guard WHERE mark = ?`

	sqlSave   = `SAVEPOINT semel_run`
	sqlKeep   = `RELEASE semel_run`
	sqlUndo   = `ROLLBACK TO semel_run`
	rollBack  = `ROLLBACK`
	purgeable = `expires <= ` + now + ` AND state IN (1, 4, 5)`

	// sqlPurge says again of the row that goes what was said of the row found.
	sqlPurge = `DELETE FROM semel_records WHERE id IN
(SELECT id FROM semel_records WHERE ` + purgeable + ` ORDER BY expires LIMIT ?) AND ` + purgeable

	sqlNote = `INSERT INTO semel_notes
(id, from_state, from_attempt, from_owner, to_state, to_attempt, to_owner, actor, reason, created)
SELECT ?, ?, ?, ?, ?, ?, ?, coalesce(?, x''), coalesce(?, x''), ` + now + ` WHERE true ON CONFLICT DO NOTHING`

	sqlNotes = `SELECT from_state, from_attempt, from_owner, to_state, to_attempt, to_owner, actor, reason, ` +
		now + ` - created FROM semel_notes WHERE id = ? ORDER BY note`
)

// verb names a statement that is prepared once.
type verb int

const (
	verbGet verb = iota
	verbScanDue
	verbScanWaits
	verbScanLeases
	verbScan
	verbWaiting
	verbClaim
	verbClaimed
	verbCreate
	verbMove
	verbBeat
	verbLastCreate
	verbLastMove
	verbLastBeat
	verbLock
	verbMark
	verbUnmark
	verbSave
	verbKeep
	verbUndo
	verbPurge
	verbNote
	verbNotes
	verbAnyWaits
	verbAnyExpired
	verbs
)

// texts returns the statement of each verb.
func texts() [verbs]string {
	return [verbs]string{
		verbGet: sqlGet, verbScan: sqlScan,
		verbScanDue: sqlScanDue, verbScanWaits: sqlScanWaits, verbScanLeases: sqlScanLeases,
		verbWaiting: sqlWaiting, verbClaim: sqlClaim, verbClaimed: sqlClaimed,
		verbCreate: sqlCreate, verbMove: sqlMove, verbBeat: sqlBeat,
		verbLastCreate: sqlLastCreate, verbLastMove: sqlLastMove, verbLastBeat: sqlLastBeat,
		verbLock: sqlLock, verbMark: sqlMark, verbUnmark: sqlUnmark,
		verbSave: sqlSave, verbKeep: sqlKeep, verbUndo: sqlUndo,
		verbPurge: sqlPurge, verbNote: sqlNote, verbNotes: sqlNotes,
		verbAnyWaits: sqlAnyWaits, verbAnyExpired: sqlAnyExpired,
	}
}
