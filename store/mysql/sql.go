package mysql

import "strings"

const (
	// now is the start of the statement, in microseconds, whatever the session's time
	// zone is.
	now = `TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))`

	columns = `id, state, attempt, owner, due - ` + now + `, expires - ` + now + `, ` + now + ` - created, ` + now + ` - changed,
operation, scope, k, fingerprint, priority, tainted, input, outcome`

	sqlGet = `SELECT ` + columns + ` FROM semel_records FORCE INDEX (PRIMARY) WHERE id IN `

	into = `INSERT INTO semel_records
(id, state, attempt, owner, due, expires, created, changed, tainted, operation, scope, k, fingerprint, priority, input, outcome) VALUES `
	row = `(?, ?, ?, ?, ` + now + ` + ?, ` + now + ` + ?, ` + now + `, ` + now + `, ?, ?, ?, ?, ?, ?, ?, ?)`
	// orNothing changes no row if the record exists. INSERT IGNORE would cut long
	// values, and would take a shared lock, which leads to deadlocks.
	orNothing = ` ON DUPLICATE KEY UPDATE owner = semel_records.owner`

	// byID names the index, because while the table is small the server would choose
	// another one, and lock records that it only reads.
	byID = `UPDATE semel_records FORCE INDEX (PRIMARY) `

	sqlMove = byID + `SET state = ?, attempt = ?, owner = ?, due = ` + now + ` + ?, expires = ` + now + ` + ?, changed = ` + now + `,
tainted = ?, input = coalesce(?, input), outcome = coalesce(?, outcome)` + current
	sqlBeat = byID + `SET due = ` + now + ` + ?, expires = ` + now + ` + ?` + current
	current = ` WHERE id = ? AND state = ? AND attempt = ? AND owner = ? AND (NOT ? OR coalesce(due, 0) <= ` + now + `)`
)

const (
	sqlIsolation = `SET TRANSACTION ISOLATION LEVEL READ COMMITTED`
	sqlBegin     = `START TRANSACTION`
	sqlSave      = `SAVEPOINT semelrun`
	sqlKeep      = `RELEASE SAVEPOINT semelrun`
	sqlUndo      = `ROLLBACK TO SAVEPOINT semelrun`

	// sqlMark writes the mark of a transaction, and the ID of a record that it holds. An
	// ID that was committed by mistake holds nothing, but can be locked.
	sqlMark   = `INSERT INTO semel_guard (id) VALUES `
	orLock    = ` ON DUPLICATE KEY UPDATE id = semel_guard.id`
	sqlUnmark = `DELETE FROM semel_guard WHERE id IN `
	sqlMarked = `SELECT id FROM semel_guard WHERE id = ? FOR UPDATE`
	sqlHold   = `SELECT id INTO @semel_held FROM semel_records WHERE id = ? FOR UPDATE`
)

const (
	purgeable    = `expires <= ` + now + ` AND state IN (1, 4, 5)`
	sqlPurgeable = `SELECT id FROM semel_records FORCE INDEX (semel_expires) WHERE ` + purgeable + ` ORDER BY expires LIMIT ? FOR UPDATE SKIP LOCKED`
	sqlPurge     = `DELETE r FROM semel_records r FORCE INDEX (PRIMARY) WHERE ` + purgeable + ` AND id IN `

	// sqlWaiting finds records of one priority. One statement for all of them, sorted by
	// priority, would lock every record that it sorts.
	sqlWaiting = `(SELECT id, priority, due FROM semel_records FORCE INDEX (semel_queue)
WHERE operation = ? AND state = 1 AND priority = ? AND due <= ` + now + ` ORDER BY due LIMIT ? FOR UPDATE SKIP LOCKED)`
	sqlClaim = byID + `SET state = 2, attempt = attempt + 1, owner = ?, due = ` + now + ` + ?, expires = NULL, changed = ` + now + `
WHERE state = 1 AND due <= ` + now + ` AND id IN `
	sqlClaimed = `SELECT ` + columns + ` FROM semel_records FORCE INDEX (semel_due)
WHERE state = 2 AND owner = ? AND operation = ? ORDER BY priority DESC, due, id`

	sqlNote = `INSERT INTO semel_notes
(id, from_state, from_attempt, from_owner, to_state, to_attempt, to_owner, actor, reason, created)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ` + now + `) ON DUPLICATE KEY UPDATE note = semel_notes.note`
	sqlNotes = `SELECT from_state, from_attempt, from_owner, to_state, to_attempt, to_owner, actor, reason, ` + now + ` - created
FROM semel_notes FORCE INDEX (semel_once) WHERE id = ? ORDER BY note`

	sqlCounts = `SELECT operation, state, count(*), coalesce(sum(state IN (1, 2) AND due <= ` + now + `), 0),
coalesce(sum(` + purgeable + `), 0), coalesce(sum(state IN (3, 5) AND substr(outcome, 1, 1) = x'64'), 0), ` + now + ` - min(changed)
FROM semel_records GROUP BY operation, state ORDER BY operation, state`
)

// list returns a list of n parameters.
func list(n int) string { return `(?` + strings.Repeat(`, ?`, n-1) + `)` }
