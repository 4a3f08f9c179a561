package ops_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/cmd/semel/internal/command"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// writerFunc is a function that is a writer.
type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestResolveAllLeavesLaterDoubts: while the command works, another operator lets a selected key be tried
// again, and that attempt is in doubt as well. The decision was not about it.
func TestResolveAllLeavesLaterDoubts(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	one, two := callOf("one"), callOf("two")
	s.makeInDoubt(t, one)
	s.makeInDoubt(t, two)
	var errs bytes.Buffer
	later := one
	tryAgain := sync.OnceFunc(func() {
		if s.state(t, one) != store.InDoubt { // it was resolved first
			later = two
		}
		r := admin.Resolution{ID: later.ID(), To: store.Pending, Actor: "eve", Reason: "the bank has no charge"}
		check.Must(admin.Resolve(t.Context(), s.engine, r))(t)
		s.makeInDoubt(t, later)
	})
	code := command.Main(t.Context(), []string{"resolve", "--all", "--operation", "charge", "--to", "failed", "--reason", "r", "--db", s.db},
		strings.NewReader(""), writerFunc(func(p []byte) (int, error) { tryAgain(); return len(p), nil }), &errs)
	if code != exit.Failed || !strings.Contains(errs.String(), later.ID().String()+" is InDoubt, and has changed since --all selected it") {
		t.Errorf("resolve: code %d, wrote %q", code, errs.String())
	}
	check.Equal(t, s.state(t, later), store.InDoubt, "the later doubt")
}
