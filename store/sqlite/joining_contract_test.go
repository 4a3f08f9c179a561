package sqlite_test

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"testing"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
)

// sequentialStore lets all changes of a batch but the first join it, a few at a
// time.
type sequentialStore struct{ *sqlite.Store }

func (s sequentialStore) Swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	caps, err := s.Capabilities(ctx)
	if err != nil || store.CheckBatch(changes, caps.MaxBatch) != nil { // batches that cannot join
		return s.Store.Swap(ctx, changes)
	}
	rest := changes[min(1, len(changes)):]
	answers, err := s.SwapJoinable(ctx, changes[:len(changes)-len(rest)], func() []store.Change {
		n := min(len(rest), 1+rand.IntN(20))
		few := rest[:n]
		rest = rest[n:]
		return few
	})
	for err == nil && len(answers) < len(changes) { // no change joins a busy batch
		answers = append(answers, store.SwapResult{Busy: true})
	}
	return answers, err
}

// The contract holds for changes that join others.
func TestContractOfJoiningChanges(t *testing.T) {
	t.Parallel()
	runContract(t, open(t), sqlite.Options{}, func(s *sqlite.Store) store.TxStore[*sql.Tx] { return sequentialStore{s} })
}
