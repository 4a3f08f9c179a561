package memory_test

import (
	"context"
	"errors"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// inTx runs fn in a transaction that commits when fn returns nil.
func inTx(t *testing.T, s *memory.Store, fn func(ctx context.Context, tx *memory.Tx) error) error {
	t.Helper()
	_, err := s.Atomic(t.Context(), store.ID{}, false,
		func(ctx context.Context, tx *memory.Tx, _ store.SwapResult) (*store.Change, error) {
			return nil, fn(ctx, tx)
		})
	return err
}

func TestValuesAreVisibleAfterTheCommit(t *testing.T) {
	t.Parallel()
	s := memory.New(memory.Options{})
	check.Require(t, inTx(t, s, func(_ context.Context, tx *memory.Tx) error {
		if err := tx.Put("k", []byte("v")); err != nil {
			return err
		}
		if got, ok := tx.Get("k"); !ok || string(got) != "v" {
			t.Errorf("Get in the transaction = %q, %v, want its own write", got, ok)
		}
		if got, ok := s.Value("k"); ok {
			t.Errorf("Value before the commit = %q, want none", got)
		}
		return nil
	}), "Atomic")
	if got, ok := s.Value("k"); !ok || string(got) != "v" {
		t.Errorf("Value after the commit = %q, %v, want v", got, ok)
	}
}

func TestValuesAreUndoneByTheRollback(t *testing.T) {
	t.Parallel()
	s := memory.New(memory.Options{})
	check.Require(t, inTx(t, s, func(_ context.Context, tx *memory.Tx) error { return tx.Put("k", []byte("old")) }), "Atomic")
	undone := errors.New("undone")
	err := inTx(t, s, func(_ context.Context, tx *memory.Tx) error {
		return errors.Join(tx.Put("k", []byte("new")), undone)
	})
	if !errors.Is(err, undone) {
		t.Fatalf("Atomic: %v, want %v", err, undone)
	}
	if got, _ := s.Value("k"); string(got) != "old" {
		t.Errorf("Value after the rollback = %q, want old", got)
	}
}

func TestLaterCommitOfAValueWins(t *testing.T) {
	t.Parallel()
	s := memory.New(memory.Options{})
	check.Require(t, inTx(t, s, func(_ context.Context, outer *memory.Tx) error {
		if err := outer.Put("k", []byte("outer")); err != nil {
			return err
		}
		return inTx(t, s, func(_ context.Context, inner *memory.Tx) error {
			if got, ok := inner.Get("k"); ok {
				t.Errorf("Get of another transaction's uncommitted value = %q, want none", got)
			}
			return inner.Put("k", []byte("inner"))
		})
	}), "Atomic")
	if got, _ := s.Value("k"); string(got) != "outer" {
		t.Errorf("Value = %q, want the later commit's", got)
	}
}

func TestValuesAreCopies(t *testing.T) {
	t.Parallel()
	s := memory.New(memory.Options{})
	mine := []byte("abc")
	check.Require(t, inTx(t, s, func(_ context.Context, tx *memory.Tx) error {
		err := tx.Put("k", mine)
		mine[0] = 'x'
		got, _ := tx.Get("k")
		got[1] = 'x'
		return err
	}), "Atomic")
	outside, _ := s.Value("k")
	outside[2] = 'x'
	if got, _ := s.Value("k"); string(got) != "abc" {
		t.Errorf("Value = %q, want abc", got)
	}
}

func TestEndedTransactionIsRejected(t *testing.T) {
	t.Parallel()
	s := memory.New(memory.Options{})
	var kept *memory.Tx
	check.Require(t, inTx(t, s, func(_ context.Context, tx *memory.Tx) error { kept = tx; return nil }), "Atomic")
	check.ErrorIs(t, kept.Put("k", nil), memory.ErrTxDone, "Put after the end")
	c := create("a", store.Pending, 0)
	if _, err := s.SwapTx(t.Context(), kept, []store.Change{c}); !errors.Is(err, memory.ErrTxDone) {
		t.Errorf("SwapTx after the end: %v, want ErrTxDone", err)
	}
	if got := current(t, s, "a"); got != store.Absent {
		t.Errorf("after the refusal the record is %v, want nothing written", got)
	}
}

func TestTransactionOfAnotherStoreIsRejected(t *testing.T) {
	t.Parallel()
	s, other := memory.New(memory.Options{}), memory.New(memory.Options{})
	c := create("a", store.Pending, 0)
	err := inTx(t, other, func(ctx context.Context, tx *memory.Tx) error {
		_, err := s.SwapTx(ctx, tx, []store.Change{c})
		return err
	})
	check.Fails(t, err, "SwapTx with a transaction of another store")
	if _, err := s.SwapTx(t.Context(), nil, []store.Change{c}); err == nil {
		t.Error("SwapTx without a transaction: nil, want an error")
	}
}

func TestCommitOfARecordThatAnotherTransactionWrote(t *testing.T) {
	t.Parallel()
	s := memory.New(memory.Options{})
	c := create("a", store.Pending, 0)
	check.Require(t, inTx(t, s, func(ctx context.Context, tx *memory.Tx) error {
		if _, err := s.SwapTx(ctx, tx, []store.Change{c}); err != nil {
			return err
		}
		verdict, err := s.Atomic(ctx, c.To.ID, false,
			func(context.Context, *memory.Tx, store.SwapResult) (*store.Change, error) { return &c, nil })
		if verdict != store.NotCommitted || err == nil || errors.Is(err, store.ErrSuperseded) {
			t.Errorf("commit over another transaction's open write = %v, %v, want NotCommitted and not ErrSuperseded", verdict, err)
		}
		return nil
	}), "Atomic")
}
