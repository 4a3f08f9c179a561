package semel_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

func TestGet(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		if r, found, err := admin.Get(t.Context(), p, "op", me, "k"); found || err != nil || r.State != store.Absent {
			t.Errorf("Get of nothing = %v, %v, %v", r.State, found, err)
		}
		do(t.Context(), p, theCall, returns("v"))
		if r, found, err := admin.Get(t.Context(), p, "op", me, "k"); !found || err != nil || r.State != store.Succeeded || r.ID != theCall.ID() {
			t.Errorf("Get = %v, %v, %v, want the record", r.State, found, err)
		}
		_, _, err := admin.Get(t.Context(), p, "op", semel.Scope{}, "k")
		wantField(t, err, "Scope")
		p.faults.Decide(func(request) fault { return fault{Before: errCut} })
		if _, found, err := admin.Get(t.Context(), p, "op", me, "k"); found || !errors.Is(err, errCut) || p.faults.CallsOf("Get") != 3 {
			t.Errorf("Get = %v, %v after %d tries, want the store's error after three", found, err, p.faults.CallsOf("Get"))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := admin.Get(ctx, p, "op", me, "k"); err == nil || p.faults.CallsOf("Get") != 4 {
			t.Errorf("Get: %v after %d tries, want one try with a canceled context", err, p.faults.CallsOf("Get")-3)
		}
	})
}

func TestList(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		op := plain("op", semel.OperationOptions[string]{})
		for _, key := range []string{"a", "b", "c"} {
			do(t.Context(), p, op.Call(me, key, "in"), returns("v"))
		}
		do(t.Context(), p, op.Call(me, "d", "in"), fails(errBoom))
		list := func(q store.Query, want int) []store.Record {
			all, err := admin.List(t.Context(), p, q)
			check.Result(len(all), err)(t, want, "records of %+v", q)
			return all
		}
		check.Equal(t, list(store.Query{State: store.InDoubt}, 1)[0].Key, "d", "the key in doubt")
		list(store.Query{After: list(store.Query{Limit: 3}, 3)[2].ID}, 1) // the next page
		p.faults.Decide(func(request) fault { return fault{Before: errCut} })
		check.ErrorIs(t, check.Err(admin.List(t.Context(), p, store.Query{})), errCut, "List")
		check.ErrorIs(t, check.Err(admin.Purge(t.Context(), p, 1)), errCut, "Purge")
		check.ErrorIs(t, check.Err(admin.Notes(t.Context(), p, store.ID{})), errCut, "Notes")
	})
}

func TestResolve(t *testing.T) {
	type row struct {
		r       admin.Resolution
		v       string // that the next call returns, as a replay unless the record is Pending
		err     error  // or its error
		failure string // or its failure
	}
	eachInBubble(t, map[string]row{
		"to Succeeded":                        {r: admin.Resolution{To: store.Succeeded, Result: "found it"}, v: "found it"},
		"to Succeeded, the result unknown":    {r: admin.Resolution{To: store.Succeeded}, err: semel.ErrResultUnavailable},
		"to Succeeded, the result unstorable": {r: admin.Resolution{To: store.Succeeded, Result: func() {}}, err: semel.ErrResultUnavailable},
		"to Failed": {
			r: admin.Resolution{To: store.Failed, Failure: &semel.Failure{Code: "gone", Message: "no trace"}}, failure: "no trace",
		},
		"to Failed without more": {r: admin.Resolution{To: store.Failed}, failure: "resolved as failed"},
		"to Pending":             {r: admin.Resolution{To: store.Pending}, v: "again"},
	}, func(t *testing.T, tt row) {
		op := plain("op", semel.OperationOptions[string]{Retention: time.Hour})
		p, mem := owned(t, op)
		call := op.Call(me, "k", "in")
		createExisting(t, mem, call, inDoubt)
		tt.r.ID, tt.r.Actor, tt.r.Reason = call.ID(), "ann", "asked the bank"
		r, err := admin.Resolve(t.Context(), p, tt.r)
		if err != nil || r.State != tt.r.To || r.Expire != time.Hour {
			t.Errorf("Resolve = %v, to expire in %v, %v; want %v in the operation's retention", r.State, r.Expire, err, tt.r.To)
		}
		p.seen.want(t, event.Resolved)
		wantNote(t, p, call, tt.r.To)
		got := do(t.Context(), p, call, returns("again"))
		switch {
		case tt.failure != "":
			got.wantFailure(t, tt.failure)
		case tt.err != nil:
			check.ErrorIs(t, got.err, tt.err, "Do")
		default:
			got.want(t, tt.v, tt.r.To != store.Pending)
		}
		check.ErrorIs(t, check.Err(admin.Resolve(t.Context(), p, tt.r)), admin.ErrNotInDoubt, "Resolve again")
		wantNote(t, p, call, tt.r.To)
	})
}

// wantNote checks that there is one note, with actor and reason.
func wantNote(t *testing.T, p *process, call semel.Call, to store.State) {
	t.Helper()
	notes, err := admin.Notes(t.Context(), p, call.ID())
	if err != nil || len(notes) != 1 {
		t.Fatalf("Notes = %d, %v, want one", len(notes), err)
	}
	n := notes[0]
	if n.Actor != "ann" || n.Reason != "asked the bank" || n.From.State != store.InDoubt || n.To.State != to {
		t.Errorf("the note says %+v", n)
	}
}

func TestResolveRejected(t *testing.T) {
	eachExisting(t, func(t *testing.T, s existingState) {
		if s == inDoubt {
			return // TestResolve
		}
		p, mem := solo(t, semel.Options{})
		createExisting(t, mem, theCall, s)
		before := record(t, mem, theCall)
		_, err := admin.Resolve(t.Context(), p, admin.Resolution{ID: theCall.ID(), To: store.Failed, Actor: "ann", Reason: "why not"})
		check.ErrorIs(t, err, admin.ErrNotInDoubt, "Resolve")
		check.Equal(t, record(t, mem, theCall).Token, before.Token, "the current record")
	})
}

func TestResolveWithLostReply(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		createExisting(t, mem, theCall, inDoubt)
		r := admin.Resolution{ID: theCall.ID(), To: store.Failed, Actor: "ann", Reason: "asked the bank"}
		for _, tt := range []struct {
			plan func(request) fault
			want []error
		}{
			{failOn("Get", fault{Before: errCut}), []error{semel.ErrUnavailable, errCut}},
			{failOn("SwapNoted", fault{Before: errCut}), []error{semel.ErrUnavailable, errCut}},
			{failOn("SwapNoted", fault{Busy: true}), []error{semel.ErrInProgress}},
			{failOn("SwapNoted", fault{Result: &store.SwapResult{Err: errCut}}), []error{errCut}},
		} {
			p.faults.Decide(tt.plan)
			_, err := admin.Resolve(t.Context(), p, r)
			answer{err: err}.wantErr(t, tt.want...)
		}
		ctx, cancel := context.WithCancel(t.Context())
		p.faults.Decide(func(r request) fault {
			if r.Method == "SwapNoted" {
				cancel()
				return fault{Hang: true}
			}
			return fault{}
		})
		if _, err := admin.Resolve(ctx, p, r); !errors.Is(err, context.Canceled) || p.faults.CallsOf("SwapNoted") != 1 {
			t.Errorf("Resolve: %v after %d tries, want one with a canceled context", err, p.faults.CallsOf("SwapNoted"))
		}
		wantState(t, mem, theCall, store.InDoubt)
	})
}

// TestResolveLosesToTheLateLeader: the late leader settles the record before the
// operator resolves it.
func TestResolveLosesToTheLateLeader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, person, mem := pair(t, semel.Options{})
		gate := make(chan struct{})
		do(t.Context(), p, theCall, func(context.Context) (string, error) {
			setInDoubt(t, mem, theCall)
			person.faults.Decide(failOn("SwapNoted", fault{Gate: gate}))
			go func() {
				r := admin.Resolution{ID: theCall.ID(), To: store.Failed, Actor: "ann", Reason: "thought so"}
				if now, err := admin.Resolve(t.Context(), person, r); !errors.Is(err, admin.ErrNotInDoubt) || now.State != store.Succeeded {
					t.Errorf("Resolve = %v, %v, want ErrNotInDoubt and the current record", now.State, err)
				}
			}()
			synctest.Wait()
			return "v", nil
		}).want(t, "v", false)
		close(gate)
		synctest.Wait()
		wantState(t, mem, theCall, store.Succeeded)
		notes, err := admin.Notes(t.Context(), p, theCall.ID())
		check.Result(len(notes), err)(t, 0, "notes of a superseded change")
	})
}

// TestResolveWithoutNotes: the store is no Auditor.
func TestResolveWithoutNotes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		createExisting(t, mem, theCall, inDoubt)
		p := startPlain(t, newFaulty(mem), semel.Options{})
		r, err := admin.Resolve(t.Context(), p, admin.Resolution{ID: theCall.ID(), To: store.Pending, Actor: "ann", Reason: "looked"})
		check.Result(r.State, err)(t, store.Pending, "Resolve")
		if notes, err := admin.Notes(t.Context(), p, theCall.ID()); notes != nil || err != nil {
			t.Errorf("Notes = %v, %v, want none", notes, err)
		}
	})
}

// TestAdminErrorsNameTheField: the store is not called.
func TestAdminErrorsNameTheField(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		p.faults.Decide(nil)
		for field, r := range map[string]admin.Resolution{
			"Actor": {To: store.Failed, Reason: "r"}, "Reason": {To: store.Failed, Actor: "a"}, "To": {To: store.InProgress, Actor: "a", Reason: "r"},
		} {
			wantField(t, check.Err(admin.Resolve(t.Context(), p, r)), field)
		}
		for field, r := range map[string]admin.RedriveRequest{
			"Actor": {Reason: "r"}, "Reason": {Actor: "a"}, "Delay": {Actor: "a", Reason: "r", Delay: -1},
		} {
			wantField(t, check.Err(admin.Redrive(t.Context(), p, r)), field)
		}
		wantField(t, check.Err(admin.Reschedule(t.Context(), p, store.ID{}, -1)), "Delay")
		wantField(t, check.Err(admin.Cancel(t.Context(), p, store.ID{}, "")), "Reason")
		wantField(t, check.Err(admin.NewSweeper(p, admin.SweeperOptions{Every: -1})), "Every")
		wantField(t, check.Err(admin.NewSweeper(p, admin.SweeperOptions{Batch: -1})), "Batch")
		check.Equal(t, p.faults.Calls(), 0, "the store was called")
	})
}

// TestOperatorsReceiveTheirOwnCopies: an operator's program may change the bytes of
// a record that it received, also with a store in memory.
func TestOperatorsReceiveTheirOwnCopies(t *testing.T) {
	type row struct {
		ask func(t *testing.T, p *process, id store.ID) (store.Record, error)
		err error
	}
	eachInBubble(t, map[string]row{
		"Get": {func(t *testing.T, p *process, _ store.ID) (store.Record, error) {
			r, _, err := admin.Get(t.Context(), p, "op", me, "k")
			return r, err
		}, nil},
		"Cancel what waits": {func(t *testing.T, p *process, id store.ID) (store.Record, error) {
			return admin.Cancel(t.Context(), p, id, "not wanted")
		}, nil},
		"Reschedule": {func(t *testing.T, p *process, id store.ID) (store.Record, error) {
			return admin.Reschedule(t.Context(), p, id, time.Hour)
		}, nil},
		"Redrive what has not failed": {func(t *testing.T, p *process, id store.ID) (store.Record, error) {
			return admin.Redrive(t.Context(), p, admin.RedriveRequest{ID: id, Actor: "ann", Reason: "mended"})
		}, admin.ErrNotFailed},
		"Resolve what is not in doubt": {func(t *testing.T, p *process, id store.ID) (store.Record, error) {
			return admin.Resolve(t.Context(), p, admin.Resolution{ID: id, To: store.Failed, Actor: "ann", Reason: "looked"})
		}, admin.ErrNotInDoubt},
	}, func(t *testing.T, tt row) {
		p, op, call := queuedTask(t, semel.AtLeastOnce(), 9, 9)
		// Without the layer of faults, so that the engine shares bytes with the store.
		direct := launch(t, p.faults, p.mem, semel.Options{Operations: []semel.Declared{op}})
		got, err := tt.ask(t, direct, call.ID())
		check.ErrorIs(t, err, tt.err, "the call")
		current := record(t, p.mem, call)
		input, outcome := string(current.Input), string(current.Outcome) // copies, as the store may share its bytes
		if input == "" || string(got.Input) != input || string(got.Outcome) != outcome {
			t.Fatalf("got %q and %q, want %q and %q", got.Input, got.Outcome, input, outcome)
		}
		clear(got.Input)
		clear(got.Outcome)
		current = record(t, p.mem, call)
		if string(current.Input) != input || string(current.Outcome) != outcome {
			t.Errorf("%q and %q are current, want the unchanged %q and %q", current.Input, current.Outcome, input, outcome)
		}
	})
}
