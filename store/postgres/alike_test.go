package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// Each change of a shared statement has its own result: applied, or the current record.
// A repeated Swap returns the same results. This holds for every way of sending
// parameters, in transactions and on sessions.
func TestEachChangeOfASharedStatementHasAResult(t *testing.T) {
	t.Parallel()
	url := database(t)
	for _, m := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			s := newStore(t, connect(t, url, mode(m)), postgres.Options{})
			repeatBulk(t, s, m.String()+" ", s.Swap)
			repeatQueued(t, s, m.String()+" ")
			repeatBulk(t, s, m.String()+" in a transaction ", func(ctx context.Context, changes []store.Change) (answers []store.SwapResult, err error) {
				err = pgx.BeginFunc(ctx, s.Pool(), func(tx pgx.Tx) error {
					answers, err = s.SwapTx(ctx, tx, changes)
					return err
				})
				return answers, err
			})
		})
	}
}

func TestEachChangeOfASharedStatementHasAResultOnSessions(t *testing.T) {
	t.Parallel()
	s := newStore(t, connect(t, database(t)), postgres.Options{})
	s.SetSessionsIdle(time.Hour) // however slow the machine is, none is closed as unused
	check.Require(t, s.OpenSessions(t.Context()))
	repeatBulk(t, s, "", s.Swap)
	repeatQueued(t, s, "")
	repeatBulk(t, s, "one by one ", func(ctx context.Context, changes []store.Change) (answers []store.SwapResult, err error) {
		for _, c := range changes {
			answer, failed := s.Swap(ctx, []store.Change{c})
			answers, err = append(answers, answer...), errors.Join(err, failed)
		}
		return answers, err
	})
	if idle, _ := s.Sessions(); idle != postgres.DefaultMaxSessions {
		t.Errorf("%d sessions are left", idle)
	}
}

// A record reads the same on a session and over the pool, for every content; and so
// do the records of a mixed batch.
func TestReadsTheSameOnSessions(t *testing.T) {
	t.Parallel()
	url := database(t)
	pooled, own := newStore(t, connect(t, url), postgres.Options{MaxSessions: -1}), newStore(t, connect(t, url), postgres.Options{})
	check.Require(t, own.OpenSessions(t.Context()))
	for _, n := range batchSizes() {
		var changes []store.Change
		for i := range n {
			c := create(fmt.Sprint(n, " key ", i), store.States()[i%5], 1<<63+uint64(i))
			c.To.Attempt, c.To.Tainted, c.To.Priority = uint32(i), i%2 == 0, int8(i%9-4)
			c.To.Due, c.To.Expire = time.Duration(i-1)*time.Hour, time.Duration(i+1)*time.Hour
			c.To.Fingerprint, c.To.Input, c.To.Outcome = nil, []byte{byte(i), 0}, nil
			if i%3 == 0 {
				c.To.Fingerprint, c.To.Outcome = []byte("\x00fingerprint"), []byte{}
			}
			changes = append(changes, c)
		}
		for i, answer := range mustSwap(t, own, changes) {
			if !answer.Applied(changes[i]) {
				t.Errorf("of %d changes, number %d answers %+v", n, i, answer)
			}
		}
		ids := idsOf(changes)
		want, got := must(pooled.Get(t.Context(), ids))(t), must(own.Get(t.Context(), ids))(t)
		for i := range ids {
			a, b := *want[i].Record, *got[i].Record
			if !near(a.Due, b.Due) || !near(a.Expire, b.Expire) || !near(a.Age, b.Age) || !near(a.Since, b.Since) {
				t.Errorf("%+v reads as %+v", a, b)
			}
			for _, r := range []*store.Record{&a, &b} {
				r.Due, r.Expire, r.Age, r.Since = 0, 0, 0, 0
				r.Fingerprint, r.Outcome = append([]byte{}, r.Fingerprint...), append([]byte{}, r.Outcome...)
			}
			if !reflect.DeepEqual(a, b) {
				t.Errorf("%+v reads as %+v", a, b)
			}
		}
	}
}

func near(a, b time.Duration) bool { return max(a-b, b-a) < time.Minute }

func repeatBulk(t *testing.T, s *postgres.Store, name string, swap func(context.Context, []store.Change) ([]store.SwapResult, error)) {
	t.Helper()
	const n = 12
	theirs := create(name+"3", store.InProgress, 99)
	mustForce(t, s, theirs)
	claims := batch(name, n)
	for i := range claims {
		claims[i].To.Due, claims[i].To.Scope, claims[i].To.Key = time.Hour, fmt.Sprint("scope ", i), fmt.Sprint("\x00key ", i)
		claims[i].To.Fingerprint = []byte{0, byte(i)}
	}
	want := tokensOf(claims)
	want[3] = theirs.To.Token
	for range 2 { // the second Swap repeats the changes
		mustBeCurrent(t, swap, claims, want)
	}
	ends := make([]store.Change, n)
	for i, c := range claims {
		ends[i] = move(c, store.Succeeded)
		ends[i].To.Expire, ends[i].To.Outcome = time.Hour, fmt.Append(nil, "outcome ", i)
	}
	ends[5].To.ID, want[5] = store.NewID("test", "scope", name+"absent"), store.Token{} // there is no record
	ends[6].To.Outcome = nil                                                            // has another statement
	ends[7].If.Attempt, want[7] = 2, claims[7].To.Token
	ends[8].To.Outcome = []byte{}
	ends[9].If.Attempt, ends[9].To.Attempt, want[9] = 2, 2, claims[9].To.Token
	for i := range ends {
		if i != 3 && i != 5 && i != 7 && i != 9 {
			want[i] = ends[i].To.Token
		}
	}
	for range 2 {
		mustBeCurrent(t, swap, ends, want)
	}
	others := slices.Clone(ends) // too late: the attempts have ended
	for i := range others {
		others[i].To.State, others[i].To.Outcome = store.Failed, []byte("another")
	}
	mustBeCurrent(t, swap, others, want)
	answers := check.Must(s.Get(t.Context(), idsOf(claims)))(t)
	for i, answer := range answers {
		r, told := answer.Record, ""
		if want[i].State == store.Succeeded && i != 6 && i != 8 {
			told = fmt.Sprint("outcome ", i)
		}
		if i == 3 {
			continue
		}
		if r.Scope != claims[i].To.Scope || r.Key != claims[i].To.Key || string(r.Fingerprint) != string(claims[i].To.Fingerprint) || string(r.Outcome) != told {
			t.Errorf("%srecord %d is %+v, want what was claimed, with the outcome %q", name, i, r, told)
		}
		if left := max(r.Due, r.Expire); left <= 59*time.Minute || left > time.Hour {
			t.Errorf("%srecord %d has %v left, want an hour", name, i, left)
		}
	}
}

// repeatQueued is repeatBulk for queued records, with equal inputs, with different ones and
// without any. A worker may have claimed a record before the test reads it.
func repeatQueued(t *testing.T, s *postgres.Store, name string) {
	t.Helper()
	theirs := create(name+"queued 3", store.Pending, 99)
	mustForce(t, s, theirs)
	waiting := batch(name+"queued ", 12)
	for i := range waiting {
		to := &waiting[i].To
		to.State, to.Attempt, to.Operation, to.Due = store.Pending, 0, name+"queued", -1
		if to.Input = fmt.Append(nil, "input ", i); i%4 == 0 {
			to.Input = nil
		}
	}
	waiting[5].To.Input = []byte{}
	want := tokensOf(waiting)
	want[3] = theirs.To.Token
	for range 2 {
		mustBeCurrent(t, s.Swap, waiting, want)
	}
	given := must(s.Dequeue(t.Context(), store.Dequeue{Operation: name + "queued", Limit: 20, Owner: 7, Lease: time.Minute}))(t)
	check.Equal(t, len(given), 11, "%s: records are handed out", name)
	for _, r := range given {
		i := slices.IndexFunc(waiting, func(c store.Change) bool { return c.To.ID == r.ID })
		if i < 0 || string(r.Input) != string(waiting[i].To.Input) || (r.Input == nil) != (waiting[i].To.Input == nil) {
			t.Errorf("%srecord %d has the input %q, want what was put in", name, i, r.Input)
		}
	}
}

// mustBeCurrent makes the changes, and requires these tokens to be current afterwards.
func mustBeCurrent(t *testing.T, swap func(context.Context, []store.Change) ([]store.SwapResult, error), changes []store.Change, want []store.Token) {
	t.Helper()
	answers := check.Must(swap(t.Context(), changes))(t)
	for i, answer := range answers {
		other := want[i] != changes[i].To.Token && want[i] != store.Token{}
		if answer.Token != want[i] || (answer.Record != nil) != other || answer.Err != nil || answer.Busy {
			t.Errorf("change %d to %+v answers %+v, want %+v", i, changes[i].To.Token, answer, want[i])
		}
	}
}

func tokensOf(changes []store.Change) []store.Token {
	all := make([]store.Token, len(changes))
	for i, c := range changes {
		all[i] = c.To.Token
	}
	return all
}

func idsOf(changes []store.Change) []store.ID {
	all := make([]store.ID, len(changes))
	for i, c := range changes {
		all[i] = c.To.ID
	}
	return all
}
