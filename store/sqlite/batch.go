package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/semelgo/semel/store"
)

// batch is the changes of one transaction.
type batch struct {
	groups  [][]store.Change   // made one after the other
	answers []store.SwapResult // of all groups
	more    func() []store.Change
}

// Self returns the store itself.
func (s *Store) Self() store.Store { return s }

// SwapJoinable is Swap of the changes and of those that arrive while they are being
// written, in the same transaction.
func (s *Store) SwapJoinable(ctx context.Context, changes []store.Change, more func() []store.Change) ([]store.SwapResult, error) {
	if len(changes) == 0 {
		return s.Swap(ctx, changes)
	}
	if err := checkBatch(ctx, changes); err != nil {
		return nil, err
	}
	answers, _ := refuse(changes)
	return s.swapBatch(ctx, &batch{[][]store.Change{changes}, answers, more})
}

// swapBatch makes first claims together, or one by one if one of them is refused.
func (s *Store) swapBatch(ctx context.Context, b *batch) ([]store.SwapResult, error) {
	err := s.swapSeveral(ctx, b, true)
	if errors.Is(err, errBatchRefused) {
		b.answers, b.more = b.answers[:0], nil
		for _, changes := range b.groups {
			answers, _ := refuse(changes)
			b.answers = append(b.answers, answers...)
		}
		err = s.swapSeveral(ctx, b, false)
	}
	switch {
	case err == nil:
		return b.answers, nil
	case errors.Is(err, ErrBusy):
		return busy(b.answers), nil
	default:
		return nil, err
	}
}

// swapSeveral makes changes in one transaction. After an error the results are
// invalid. After ErrBusy nothing was written.
func (s *Store) swapSeveral(ctx context.Context, b *batch, together bool) error {
	w, err := s.begin(ctx, verbLock)
	switch {
	case errors.Is(err, ErrBusy):
		return ErrBusy
	case err != nil:
		return s.fault(ctx, "swap", err)
	}
	defer w.leave(ctx)
	err = w.swapGroups(ctx, b, together)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return s.fault(ctx, "swap", err)
	}
	verdict, err := w.commit(ctx)
	switch {
	case err == nil:
		return nil
	case verdict == store.NotCommitted && IsBusy(err):
		return ErrBusy
	default:
		return fmt.Errorf("swap: commit: %w", err)
	}
}

// swapGroups makes the changes of all groups, and of those that join them. Each
// group has its own time, because joined changes arrived later.
func (s *session) swapGroups(ctx context.Context, b *batch, together bool) error {
	for i, from := 0, 0; i < len(b.groups); i++ {
		changes := b.groups[i]
		answers := b.answers[from : from+len(changes)]
		from += len(changes)
		s.at = nil
		if together {
			if err := s.openBatch(ctx, changes, answers); err != nil {
				return err
			}
		}
		if err := s.swapAll(ctx, changes, answers); err != nil {
			return err
		}
		if err := b.gather(ctx); err != nil {
			return err
		}
	}
	return nil
}

// gather adds a group of the changes that have arrived meanwhile, if there are any.
func (b *batch) gather(ctx context.Context) error {
	if b.more == nil {
		return nil
	}
	joined := b.more()
	if len(joined) == 0 {
		return nil
	}
	if err := checkBatch(ctx, joined); err != nil {
		return err
	}
	answers, _ := refuse(joined)
	b.groups, b.answers = append(b.groups, joined), append(b.answers, answers...)
	return nil
}
