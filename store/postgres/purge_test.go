package postgres_test

import (
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// Purge passes over what an open transaction holds, and takes it later, unless it
// was claimed meanwhile.
func TestPurgeBesideAHolder(t *testing.T) {
	t.Parallel()
	s, pool := open(t, postgres.Options{})
	const n = 1200 // more than one transaction's share
	made := batch("expired", 1000)
	made = append(made, batch("more", n-1000)...)
	for i := range made {
		made[i].To.State, made[i].To.Expire = store.Pending, -1
	}
	mustAll(t, s, made[:1000])
	mustAll(t, s, made[1000:])
	holder := check.Must(pool.Begin(t.Context()))(t)
	claim := move(made[0], store.InProgress)
	check.Must(s.SwapTx(t.Context(), holder, []store.Change{claim}))(t)
	mustExec(t, holder, `SELECT FROM semel_records WHERE key = convert_to('expired1', 'UTF8') FOR UPDATE`)
	check.Result(s.Purge(t.Context(), 2*n))(t, n-2, "Purge beside a holder of two")
	check.Require(t, holder.Commit(t.Context()))
	if gone, err := s.Purge(t.Context(), n); gone != 1 || err != nil || current(t, s, claim) != claim.To.Token {
		t.Errorf("Purge afterwards = %d, %v, want 1, and not what was claimed", gone, err)
	}
}
