package mysql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/semelgo/semel/store"
)

var _ store.Batcher[*Batch] = (*Store)(nil)

// Batch is a list of statements that [Store.AtomicBatch] sends together. They run in
// their order. A nil Batch is empty.
type Batch struct{ statements []step }

// Queue adds a statement: an INSERT, UPDATE, DELETE or REPLACE. Each ? in its text
// stands for one argument. The text must not have a semicolon; values with ? or
// semicolons are passed as arguments.
func (b *Batch) Queue(query string, args ...any) {
	b.statements = append(b.statements, step{text: query, args: args})
}

// check returns why a batch cannot be sent. Its statements become parts of one text.
func (b *Batch) check() error {
	for i, st := range b.statements {
		word, _, _ := strings.Cut(strings.TrimSpace(st.text), " ")
		switch strings.ToUpper(word) {
		case "INSERT", "UPDATE", "DELETE", "REPLACE":
		default:
			return fmt.Errorf("statement %d begins with %q: a batch takes INSERT, UPDATE, DELETE and REPLACE", i, word)
		}
		switch n := strings.Count(st.text, "?"); {
		case strings.Contains(st.text, ";"):
			return fmt.Errorf("statement %d has a semicolon: pass values as arguments", i)
		case n != len(st.args):
			return fmt.Errorf("statement %d has %d placeholders and %d arguments", i, n, len(st.args))
		}
	}
	return nil
}

// AtomicBatch works on a connection of the application's pool, whose limit of lock
// waits applies to the batch's statements. Its isolation level is read committed.
func (s *Store) AtomicBatch(ctx context.Context, change store.Change, hold bool, batch *Batch) (store.SwapResult, store.Verdict, error) {
	if batch == nil {
		batch = &Batch{}
	}
	if err := batch.check(); err != nil {
		return store.SwapResult{}, store.NotCommitted, fmt.Errorf("batch: %w: %w", store.ErrNotStarted, err)
	}
	if err := change.Check(maxOutcome); err != nil {
		return store.SwapResult{Err: fmt.Errorf("swap %w", err)}, store.NotCommitted, nil
	}
	t, err := s.take(ctx, change.To.ID)
	if err != nil {
		return store.SwapResult{}, store.NotCommitted, fmt.Errorf("batch: %w: %w", store.ErrNotStarted, err)
	}
	defer t.leave()
	for pause := firstPause; ; pause *= 2 {
		result, verdict, err := t.batch(withKind(context.WithoutCancel(ctx), beginning), &change, hold, batch)
		if !result.Busy || pause > lastPause || rest(ctx, pause) != nil {
			return result, verdict, err
		}
	}
}

// batchSteps are the statements of an AtomicBatch before its COMMIT.
func batchSteps(change *store.Change, hold bool, batch *Batch) []step {
	steps := []step{{text: sqlIsolation}, {text: sqlBegin}}
	if hold {
		steps = append(steps, step{text: sqlMark + `(?)` + orLock, args: []any{change.To.ID[:]}, wait: noWait})
	}
	last := lastStep(change)
	last.wait = noWait
	steps = append(append(steps, last, step{mark: true}), batch.statements...)
	if hold {
		steps = append(steps, step{text: sqlUnmark + `(?)`, args: []any{change.To.ID[:]}})
	}
	return steps
}

// batch sends the statements and the COMMIT once.
func (t *transaction) batch(ctx context.Context, change *store.Change, hold bool, batch *Batch) (store.SwapResult, store.Verdict, error) {
	var err error
	if t.tx, err = t.conn.BeginTx(ctx, nil); err != nil {
		return store.SwapResult{}, store.NotCommitted, fmt.Errorf("batch: %w: %w", store.ErrNotStarted, err)
	}
	bound := time.AfterFunc(t.store.commitBound, t.cut)
	defer bound.Stop()
	reached, err := t.commit(ctx, t.store.in(t.tx), batchSteps(change, hold, batch)...)
	if err == nil {
		t.over()
		t.leaveTx()
		return store.SwapResult{Token: change.To.Token}, store.Committed, nil
	}
	lost := t.isLost()
	t.leaveTx() // rolls back
	switch {
	case codeOf(err) == 0 && !lost && !errors.Is(err, store.ErrSuperseded): // it was not sent
		return store.SwapResult{}, store.NotCommitted, fault("batch", err)
	case reached > 1 && !isConflict(err) && codeOf(err) != codeNotReady:
		return store.SwapResult{}, store.Unknown, fault("batch", err)
	case reached > 0 || lost:
		return store.SwapResult{}, store.NotCommitted, fault("batch", withMark(err))
	case errors.Is(err, store.ErrSuperseded):
		return t.current(ctx, change)
	case isBusy(err):
		return store.SwapResult{Busy: true}, store.NotCommitted, nil
	case isRefusal(err):
		return store.SwapResult{Err: fmt.Errorf("swap record %s: %w", change.To.ID, err)}, store.NotCommitted, nil
	default:
		return store.SwapResult{}, store.NotCommitted, fault("batch", withMark(err))
	}
}

// current reads the current record and returns the result of a change that was not applied.
func (t *transaction) current(ctx context.Context, change *store.Change) (store.SwapResult, store.Verdict, error) {
	found, err := get(ctx, t.store.own, []store.ID{change.To.ID})
	if err != nil {
		return store.SwapResult{}, store.NotCommitted, fault("batch", err)
	}
	return resultOf(change, found[change.To.ID]), store.NotCommitted, nil
}

// take takes a connection of the application's pool for a transaction.
func (s *Store) take(ctx context.Context, id store.ID) (*transaction, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := s.dialect(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	t := &transaction{dialect: f, store: s, conn: conn, id: id}
	err = conn.Raw(func(c any) error {
		t.session = c.(*session)
		return nil
	})
	if err != nil {
		conn.Close()
		return nil, err
	}
	return t, nil
}
