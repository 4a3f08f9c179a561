package engine

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

func recordOf(s store.SwapResult) store.Record {
	if s.Record == nil {
		return store.Record{}
	}
	return *s.Record
}

// recordAfter returns the record after change is applied.
func recordAfter(change store.Change, before store.Record) store.Record {
	r := change.To
	r.Since = 0
	if change.If != (store.Token{}) {
		r.Priority = before.Priority // written by the create, and never changed
	}
	if r.Input == nil {
		r.Input = before.Input
	}
	if r.Outcome == nil {
		r.Outcome = before.Outcome
	}
	return r
}

// publicRecord copies a record's bytes, which may be shared with the store, so that
// the caller may change them. It also seals the error.
func publicRecord(r store.Record, err error) (store.Record, error) {
	r.Input, r.Outcome = bytes.Clone(r.Input), bytes.Clone(r.Outcome)
	return r, callerr.Seal(err)
}

// swapTries is the number of tries before the store counts as unavailable.
const swapTries = 3

// newOwner returns a random number that no other write of a record has. It comes
// from the operating system, because a copy of this process, from a snapshot of a
// virtual machine for instance, would repeat the numbers of a generator in the
// process.
func newOwner() uint64 {
	var b [8]byte
	for {
		_, _ = crand.Read(b[:])                                                    // never fails
		if owner := binary.LittleEndian.Uint64(b[:]); owner >= protocol.MinOwner { // MarkOwner never makes it zero
			return owner
		}
	}
}

// reader reads current records, in batches with other callers.
type reader struct {
	store     store.Store
	inProcess store.InProcess // the store, if it implements InProcess
	batching  *batching
	timeout   time.Duration
}

// get reads the current record. It reads in a batch first, and alone after an error.
func (r *reader) get(ctx context.Context, id store.ID) (store.Record, error) {
	if r.inProcess != nil {
		if answer, err := r.inProcess.GetOne(ctx, id); err == nil || ctx.Err() != nil {
			return recordOf(answer), unread(err)
		}
	}
	begun := clock.Now()
	if r.batching.gets != nil {
		answer, err := r.batching.gets.Do(ctx, id, false)
		if err == nil || isNotSent(err) || ctx.Err() != nil {
			return recordOf(answer), unread(err)
		}
	}
	records, err := r.getAll(ctx, begun, id)
	if err != nil {
		return store.Record{}, err
	}
	return records[0], nil
}

// unread returns the error of a read that failed with err, or nil.
func unread(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: read the record: %w", callerr.ErrUnavailable, err)
}

// getAll reads records alone, with as many tries as swap, in a time that began at begun.
func (r *reader) getAll(ctx context.Context, begun time.Time, ids ...store.ID) ([]store.Record, error) {
	ctx, cancel := context.WithDeadline(ctx, begun.Add(r.timeout))
	defer cancel()
	var last error
	for range swapTries {
		answers, err := r.store.Get(ctx, ids)
		if err == nil {
			records := make([]store.Record, len(answers))
			for i := range answers {
				records[i] = recordOf(answers[i])
			}
			return records, nil
		}
		if last = err; ctx.Err() != nil {
			break
		}
	}
	return nil, unread(last)
}

// readHint decides from recent calls whether to read a record before claiming it.
// Most keys are new, and a claim returns the current record anyway. If most keys
// are retries, a read is all that they need, and it writes nothing.
type readHint struct {
	// repeats is positive if more of the last keys were final than new.
	repeats atomic.Int32
	// transactions is the number of open transactions of this process.
	transactions atomic.Int32
	// wrote is the time of the last successful write of this process, in
	// nanoseconds of the Unix epoch.
	wrote atomic.Int64
	// oneWriter is set if the store lets one transaction write at a time.
	oneWriter bool
}

const (
	// repeatsBound is how many equal observations outweigh all earlier ones.
	repeatsBound = 16
	// quietFor is how long after a write this process assumes that no other process
	// writes.
	quietFor = 10 * time.Millisecond
)

// observe counts a key: its record was final, or the caller has claimed it.
func (l *readHint) observe(final bool) {
	was := l.repeats.Load()
	switch {
	case final && was < repeatsBound:
		l.repeats.Add(1)
	case !final && was > -repeatsBound:
		l.repeats.Add(-1)
	}
}

// observeWrite notes a successful write.
func (l *readHint) observeWrite() {
	if l.oneWriter {
		l.wrote.Store(clock.Now().UnixNano())
	}
}

// readFirst reports whether to read first: if the record is probably final, or if,
// in a store with one writer, a claim may have to wait for a transaction and a read
// does not.
func (l *readHint) readFirst() bool {
	if l.repeats.Load() > 0 {
		return true
	}
	return l.oneWriter && (l.transactions.Load() > 0 || clock.Now().UnixNano()-l.wrote.Load() > int64(quietFor))
}
