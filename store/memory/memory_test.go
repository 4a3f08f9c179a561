package memory_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// clock is a clock that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Unix(1_000_000, 0)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// create is a change that creates a record of the state, by key.
func create(key string, state store.State, expire time.Duration) store.Change {
	return store.Change{To: store.Record{
		ID:        store.NewID("op", "scope", key),
		Token:     store.Token{State: state, Attempt: 1, Owner: 1},
		Expire:    expire,
		Operation: "op", Scope: "scope", Key: key,
	}}
}

func swap(t *testing.T, s *memory.Store, changes ...store.Change) []store.SwapResult {
	t.Helper()
	answers, err := s.Swap(t.Context(), changes)
	check.Require(t, err, "Swap")
	return answers
}

func mustCreate(t *testing.T, s *memory.Store, c store.Change) {
	t.Helper()
	if answer := swap(t, s, c)[0]; !answer.Applied(c) {
		t.Fatalf("Swap(create %s) = %+v, want applied", c.To.Key, answer)
	}
}

func current(t *testing.T, s *memory.Store, key string) store.State {
	t.Helper()
	answers, err := s.Get(t.Context(), []store.ID{store.NewID("op", "scope", key)})
	check.Require(t, err, "Get(%s)", key)
	return answers[0].Token.State
}

func TestFullStoreRejectsOnlyCreates(t *testing.T) {
	t.Parallel()
	s := memory.New(memory.Options{MaxRecords: 2})
	first, second := create("a", store.InProgress, 0), create("b", store.Succeeded, time.Hour)
	mustCreate(t, s, first)
	mustCreate(t, s, second)

	finish := store.Change{If: first.To.Token, To: first.To}
	finish.To.State = store.Succeeded
	more := create("c", store.InProgress, 0)
	answers := swap(t, s, more, finish)
	check.ErrorIs(t, answers[0].Err, memory.ErrFull, "create in a full store: Err")
	if !answers[1].Applied(finish) {
		t.Errorf("change of a record in a full store = %+v, want applied", answers[1])
	}
	for key, want := range map[string]store.State{"a": store.Succeeded, "b": store.Succeeded, "c": store.Absent} {
		check.Equal(t, current(t, s, key), want, "record %s", key)
	}
}

func TestFullStorePurgesExpiredRecords(t *testing.T) {
	t.Parallel()
	now := newClock()
	s := memory.New(memory.Options{MaxRecords: 4, Now: now.Now})
	mustCreate(t, s, create("later", store.Succeeded, 2*time.Hour))
	mustCreate(t, s, create("sooner", store.Failed, time.Hour))
	mustCreate(t, s, create("kept", store.Succeeded, 0))
	mustCreate(t, s, create("running", store.InProgress, time.Minute))
	now.Advance(time.Hour)

	mustCreate(t, s, create("new", store.InProgress, 0))
	if got := current(t, s, "sooner"); got != store.Absent {
		t.Errorf("the expired record is %v, want it purged", got)
	}
	again := create("another", store.InProgress, 0)
	if answer := swap(t, s, again)[0]; !errors.Is(answer.Err, memory.ErrFull) {
		t.Errorf("create when nothing is expired = %+v, want ErrFull", answer)
	}
	now.Advance(time.Hour)
	mustCreate(t, s, again)
	for key, want := range map[string]store.State{
		"later": store.Absent, "kept": store.Succeeded, "running": store.InProgress,
	} {
		check.Equal(t, current(t, s, key), want, "record %s", key)
	}
}

func TestUncommittedCreatesNeedRoom(t *testing.T) {
	t.Parallel()
	s := memory.New(memory.Options{MaxRecords: 1})
	mine, other := create("a", store.Pending, 0), create("b", store.Pending, 0)
	undone := errors.New("undone")
	_, err := s.Atomic(t.Context(), mine.To.ID, false,
		func(ctx context.Context, tx *memory.Tx, _ store.SwapResult) (*store.Change, error) {
			if _, err := s.SwapTx(ctx, tx, []store.Change{mine}); err != nil {
				return nil, err
			}
			if answer := swap(t, s, other)[0]; !errors.Is(answer.Err, memory.ErrFull) {
				t.Errorf("create beside an uncommitted one = %+v, want ErrFull", answer)
			}
			return nil, undone
		})
	if !errors.Is(err, undone) {
		t.Fatalf("Atomic: %v, want %v", err, undone)
	}
	mustCreate(t, s, other) // the room was given back
}

func TestEveryCallHonorsItsContext(t *testing.T) {
	t.Parallel()
	s := memory.New(memory.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	never := func(context.Context, *memory.Tx, store.SwapResult) (*store.Change, error) {
		t.Error("run was called with a context that had ended")
		return nil, nil
	}
	for name, call := range map[string]func() error{
		"Swap": func() error {
			_, err := s.Swap(ctx, []store.Change{create("a", store.Pending, 0)})
			return err
		},
		"Get":    func() error { _, err := s.Get(ctx, nil); return err },
		"Scan":   func() error { _, err := s.Scan(ctx, store.Query{}); return err },
		"Purge":  func() error { _, err := s.Purge(ctx, 1); return err },
		"Counts": func() error { _, err := s.Counts(ctx); return err },
		"Notes":  func() error { _, err := s.Notes(ctx, store.ID{}); return err },
		"SwapNoted": func() error {
			_, err := s.SwapNoted(ctx, create("a", store.Pending, 0), store.Note{})
			return err
		},
		"Atomic": func() error { _, err := s.Atomic(ctx, store.ID{}, true, never); return err },
	} {
		check.ErrorIs(t, call(), context.Canceled, "%s with a context that has ended", name)
	}
	if got := current(t, s, "a"); got != store.Absent {
		t.Errorf("afterwards the record is %v, want nothing written", got)
	}
}

func TestPurgeKeepsLockedRecords(t *testing.T) {
	t.Parallel()
	s := memory.New(memory.Options{})
	held, free := create("held", store.Pending, -1), create("free", store.Pending, -1)
	mustCreate(t, s, held)
	mustCreate(t, s, free)
	done := held
	done.If, done.To.State = held.To.Token, store.Succeeded
	verdict, err := s.Atomic(t.Context(), held.To.ID, true,
		func(ctx context.Context, _ *memory.Tx, _ store.SwapResult) (*store.Change, error) {
			check.Result(s.Purge(ctx, 10))(t, 1, "Purge")
			return &done, nil
		})
	if verdict != store.Committed || err != nil {
		t.Fatalf("Atomic = %v, %v, want Committed, nil", verdict, err)
	}
	check.Result(s.Purge(t.Context(), 10))(t, 1, "Purge after the transaction")
}
