package mysql

import (
	"database/sql"
	"time"

	"github.com/semelgo/semel/store"
)

// SetCommitBound changes how long s waits for a COMMIT.
func (s *Store) SetCommitBound(d time.Duration) { s.commitBound = d }

// OwnPool returns the pool of the store's own connections.
func (s *Store) OwnPool() *sql.DB { return s.lanes }

// SendOneByOne lets the stores of s's database send the steps of their scripts one by
// one, as MySQL needs it.
func (s *Store) SendOneByOne() {
	s.server.known.Store(&dialect{maxBytes: 2 * maxOutcome})
	s.lanes.SetMaxIdleConns(0) // their settings are MariaDB's
	s.lanes.SetMaxIdleConns(maxOwnConns)
}

// CheckSettings returns why the store does not work with the settings, and what the
// records survive.
func CheckSettings(v map[string]string) (survives store.Failure, because string, err error) {
	survives, because = settings(v).survives()
	return survives, because, settings(v).check()
}

// Statement is a statement of the store, and the index that it must read.
type Statement struct {
	Text  string
	Args  []any
	Index string
	Sorts bool // it sorts few records
}

// Statements returns every statement that finds records.
func Statements() []Statement {
	id := make([]byte, 16)
	c := store.Change{If: store.Token{State: store.InProgress, Attempt: 1, Owner: 1}, IfDue: true}
	c.To.Token = store.Token{State: store.Succeeded, Attempt: 1, Owner: 1}
	beat := c
	beat.To.Token = c.If
	var all []Statement
	add := func(index string, sorts bool, text string, args ...any) {
		all = append(all, Statement{text, args, index, sorts})
	}
	full := c
	full.To.Owner, full.To.Input, full.To.Outcome = 2, []byte("in"), []byte("out")
	for _, one := range []store.Change{c, beat, full} {
		st := bulkUpdate([]store.Change{one, one, one}, []int{0, 1, 2})
		add("PRIMARY", false, st.text, st.args...)
	}
	for _, one := range []*store.Change{&c, &beat} {
		text, args := statement(one)
		add("PRIMARY", false, text, args...)
	}
	add("PRIMARY", false, sqlGet+list(3), id, id, id)
	add("PRIMARY", false, sqlPurge+list(3), id, id, id)
	add("PRIMARY", false, sqlClaim+list(3), 1, 1, id, id, id)
	add("PRIMARY", false, `SELECT id FROM semel_records WHERE id = ? FOR UPDATE`, id)
	add("semel_expires", false, sqlPurgeable, 10)
	add("semel_queue", false, sqlWaiting, []byte("test"), 0, 10)
	add("semel_due", true, sqlClaimed, 1, []byte("test"))
	add("semel_once", true, sqlNotes, id)
	for _, q := range []store.Query{
		{Due: true},
		{Due: true, State: store.Pending},
		{Due: true, State: store.InProgress, Operation: "test"},
		{State: store.InDoubt},
		{State: store.Failed, Operation: "test"},
		{},
		{State: store.Succeeded},
		{Operation: "test"},
	} {
		text, args, _ := scanned(q)
		index := "PRIMARY"
		if q.Due || q.State == store.InDoubt || q.State == store.Failed {
			index = "semel_due"
		}
		add(index, false, text, args...)
	}
	return all
}
