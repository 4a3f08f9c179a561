package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/semelgo/semel/store"
)

// ownTxPart runs the checks of SwapTx in transactions that the program begins, at each
// isolation level.
func ownTxPart[Tx any](newHarness func(t *testing.T) *txHarness[Tx]) part {
	p := part{name: "OwnTx", lacks: func(t *testing.T) string {
		if len(newHarness(t).subject.Begin) == 0 {
			return "Subject.Begin is empty: only Atomic begins transactions of the store"
		}
		return ""
	}}
	for _, c := range append(swapTxChecks[Tx](), txCheck[Tx]{"CommittedMeanwhile", committedMeanwhile[Tx]}) {
		p.checks = append(p.checks, testCase{c.name, func(t *testing.T) {
			for _, level := range slices.Sorted(maps.Keys(newHarness(t).subject.Begin)) {
				t.Run(level, func(t *testing.T) {
					r := newHarness(t)
					r.tx = &beginStore[Tx]{r.tx, r.subject.Begin[level]}
					c.run(r)
				})
			}
		}})
	}
	return p
}

// beginStore is a store whose Atomic begins a transaction as a program does, and makes
// the last change with SwapTx.
type beginStore[Tx any] struct {
	store.TxStore[Tx]

	begin BeginFunc[Tx]
}

// Atomic implements store.TxStore, without a right to the record and without a kept
// failure.
func (s *beginStore[Tx]) Atomic(ctx context.Context, _ store.ID, _ bool,
	run func(ctx context.Context, tx Tx, current store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	tx, commit, rollback, err := s.begin(ctx)
	if err != nil {
		return store.NotCommitted, err
	}
	last, err := run(ctx, tx, store.SwapResult{})
	if err == nil && last != nil {
		err = s.swapLast(ctx, tx, *last)
	}
	if err != nil {
		return store.NotCommitted, errors.Join(err, rollback())
	}
	if err := commit(); err != nil {
		verdict := store.Unknown
		if errors.Is(err, store.ErrConflict) { // the database has rolled the transaction back
			verdict = store.NotCommitted
		}
		return verdict, fmt.Errorf("commit: %w", err)
	}
	return store.Committed, nil
}

func (s *beginStore[Tx]) swapLast(ctx context.Context, tx Tx, last store.Change) error {
	answers, err := s.SwapTx(ctx, tx, []store.Change{last})
	if err == nil && !answers[0].Applied(last) {
		err = store.ErrSuperseded
	}
	return err
}

// A transaction meets records that were committed after it has read for the first
// time. SwapTx answers with the current token, or fails. It neither applies a change
// over such a record, nor answers that there is none. A store that excludes nothing may
// not know of the other change yet: the transaction must then fail. Or it is just
// applying the other change, and answers Busy.
func committedMeanwhile[Tx any](r *txHarness[Tx]) {
	if r.caps.Exclusion == store.ExcludesAll {
		r.Skip("Exclusion is ExcludesAll: no change is applied while the transaction is open")
	}
	for _, creates := range []bool{true, false} {
		rec := r.fresh()
		theirs, own := create(rec, store.InProgress), create(rec, store.InProgress)
		if !creates {
			rec = r.mustCreateIn(store.Pending)
			theirs, own = move(rec, token(store.InProgress, 2)), move(rec, token(store.InProgress, 2))
		}
		unrelated, early := create(r.fresh(), store.Pending), false
		verdict, err := r.tx.Atomic(r.ctx, rec.ID, false, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
			r.mustApplyTx(ctx, tx, unrelated)
			r.mustApply(theirs)
			answers, err := r.tx.SwapTx(ctx, tx, []store.Change{own})
			if err != nil {
				return nil, errors.Join(errRun, err)
			}
			replicated := r.caps.Exclusion == store.ExcludesNothing
			if early = replicated && answers[0].Applied(own); early {
				return nil, nil //nolint:nilnil // the commit must fail
			}
			if replicated && answers[0].Busy {
				return nil, nil //nolint:nilnil // commit without a change
			}
			r.checkRejected(own, answers[0], theirs.To.Token)
			return nil, nil //nolint:nilnil // commit without a change
		})
		switch {
		case early && (verdict != store.NotCommitted || !errors.Is(err, store.ErrConflict)):
			r.Errorf("a transaction that did not see a change of others = %v, %v, want NotCommitted and ErrConflict", verdict, err)
		case !early && (verdict != store.Committed || err != nil) && !errors.Is(err, errRun):
			r.Errorf("a transaction that conflicts with another change = %v, %v", verdict, err)
		}
		if verdict == store.NotCommitted {
			r.mustBeAbsent(unrelated.To.ID)
		}
		if got := r.mustRead(rec.ID).Token; got != theirs.To.Token {
			r.Errorf("%s is current, want the change of others, %s", showToken(got), showToken(theirs.To.Token))
		}
	}
}
