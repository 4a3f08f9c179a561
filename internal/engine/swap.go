package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// swap writes one change, outside of a batch. Repeating a change is safe, so a try
// without a reply is repeated: at once, then with exponential backoff, until ctx
// ends or tries are used up (0: until ctx ends). After a lost reply, Busy is no
// answer either, because the transaction that holds the record may be the lost try
// itself.
func (w *writer) swap(ctx context.Context, change *store.Change, tries int) (store.SwapResult, error) {
	try, lost := 1, error(nil)
	if w.inProcess != nil {
		answer, err := w.inProcess.SwapOne(ctx, *change)
		switch {
		case err == nil && answer.Err == nil:
			return answer, nil
		case err == nil:
			return refusal(answer)
		}
		w.emit(ctx, event.StoreError, change.To, err)
		if tries == 1 || ctx.Err() != nil {
			return store.SwapResult{}, err
		}
		try, lost = 2, err
	}
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	return w.retrySwap(ctx, change, tries, try, lost)
}

// retrySwap continues swap with the given try, after an earlier one failed.
func (w *writer) retrySwap(ctx context.Context, change *store.Change, tries, try int, lost error) (store.SwapResult, error) {
	wait := 5 * time.Millisecond
	for ; ; try++ {
		answers, err := w.store.Swap(ctx, []store.Change{*change})
		if err == nil {
			w.observeBusy(change.To.ID, answers[0].Busy)
		}
		if err == nil && answers[0].Busy && lost != nil {
			err = lost
		}
		if err == nil {
			answer, err := refusal(answers[0])
			if err != nil && lost != nil {
				err = fmt.Errorf("%w %w: %w", err, callerr.ErrAfterLost, lost)
			}
			return answer, err
		}
		lost = err
		w.emit(ctx, event.StoreError, change.To, err)
		if try == tries || ctx.Err() != nil {
			return store.SwapResult{}, err
		}
		if try == 1 {
			continue
		}
		if clock.Sleep(ctx, jitter(wait)) != nil {
			return store.SwapResult{}, err
		}
		wait = min(2*wait, time.Second)
	}
}

// refusal returns the error of a change that the store refuses.
func refusal(answer store.SwapResult) (store.SwapResult, error) {
	if answer.Err != nil {
		return answer, fmt.Errorf("%w: %w", callerr.ErrRefused, answer.Err)
	}
	return answer, nil
}

// swapBatched is swap in a batch. A change whose batch failed is retried on its
// own, so that one change cannot fail others again. A record that another open
// transaction holds is written on its own for some time. The whole call takes at
// most RecordTimeout.
func (w *writer) swapBatched(ctx context.Context, change *store.Change, tries int) (store.SwapResult, error) {
	if w.batching.swaps == nil || w.batching.busy.has(change.To.ID) {
		return w.swap(ctx, change, tries)
	}
	begun := clock.Now()
	must := protocol.IsEnd(change) // a full queue must not refuse it
	answer, err := w.batching.swaps.Do(ctx, *change, must)
	switch {
	case err == nil:
		w.observeBusy(change.To.ID, answer.Busy)
		return refusal(answer)
	case isNotSent(err), asAbandoned(err) != nil:
		return answer, err
	}
	w.emit(ctx, event.StoreError, change.To, err)
	if tries == 1 || ctx.Err() != nil {
		return answer, err
	}
	ctx, cancel := context.WithDeadline(ctx, begun.Add(w.timeout))
	defer cancel()
	return w.retrySwap(ctx, change, tries, 2, err)
}

// observeBusy notes whether the store was busy. In a store with one writer, Busy
// says nothing about the record.
func (w *writer) observeBusy(id store.ID, busy bool) {
	switch {
	case !w.hint.oneWriter:
		w.batching.busy.observe(id, busy)
	case !busy:
		w.hint.observeWrite()
	}
}

// retryBusy repeats a function while another open transaction holds the record,
// until ctx ends.
func retryBusy(ctx context.Context, ask func() error) error {
	wait := 5 * time.Millisecond
	for {
		err := ask()
		if !errors.Is(err, callerr.ErrBusy) {
			return err
		}
		if perr := clock.Sleep(ctx, jitter(wait)); perr != nil {
			return fmt.Errorf("%w: %w", err, perr)
		}
		wait = min(2*wait, 100*time.Millisecond)
	}
}

// proveChange repeats a change, outside of a batch, until the store says whether it
// is applied, or ctx ends.
func (w *writer) proveChange(ctx context.Context, change *store.Change) (answer store.SwapResult, err error) {
	err = retryBusy(ctx, func() error {
		answer, err = w.swap(ctx, change, 0)
		if err == nil && answer.Busy {
			return callerr.ErrBusy
		}
		return err
	})
	return answer, err
}

// swapNoted makes the change with a note of the actor and the reason, if the store
// keeps notes.
func (w *writer) swapNoted(ctx context.Context, change store.Change, note store.Note) (store.SwapResult, error) {
	auditor, ok := w.store.(store.Auditor)
	if !ok {
		return w.swap(ctx, &change, swapTries)
	}
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	var last error
	for range swapTries {
		answer, err := auditor.SwapNoted(ctx, change, note)
		if err == nil {
			return answer, answer.Err
		}
		if last = err; ctx.Err() != nil {
			break
		}
	}
	return store.SwapResult{}, last
}
