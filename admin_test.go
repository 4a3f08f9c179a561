package semel_test

import (
	"context"
	"errors"
	"strings"
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
		call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
		if r, found, err := admin.Get(t.Context(), p, "op", me, "k"); found || err != nil || r.State != store.Absent {
			t.Errorf("Get of nothing = %v, %v, %v", r.State, found, err)
		}
		do(t.Context(), p, call, returns("v"))
		if r, found, err := admin.Get(t.Context(), p, "op", me, "k"); !found || err != nil || r.State != store.Succeeded || r.ID != call.ID() {
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
		got, err := admin.List(t.Context(), p, store.Query{State: store.InDoubt})
		if err != nil || len(got) != 1 || got[0].Key != "d" {
			t.Errorf("List in doubt = %d records, %v, want d", len(got), err)
		}
		first, err := admin.List(t.Context(), p, store.Query{Limit: 3})
		if err != nil || len(first) != 3 {
			t.Fatalf("List = %d records, %v, want 3", len(first), err)
		}
		rest, err := admin.List(t.Context(), p, store.Query{After: first[2].ID})
		check.Result(len(rest), err)(t, 1, "the next page")
		p.faults.Decide(func(request) fault { return fault{Before: errCut} })
		if _, err := admin.List(t.Context(), p, store.Query{}); !errors.Is(err, errCut) {
			t.Errorf("List: %v, want the store's error", err)
		}
		if _, err := admin.Purge(t.Context(), p, 1); !errors.Is(err, errCut) {
			t.Errorf("Purge: %v, want the store's error", err)
		}
		if _, err := admin.Notes(t.Context(), p, store.ID{}); !errors.Is(err, errCut) {
			t.Errorf("Notes: %v, want the store's error", err)
		}
	})
}

func TestResolve(t *testing.T) {
	t.Parallel()
	failure := &semel.Failure{Code: "gone", Message: "no trace"}
	tests := map[string]struct {
		r     admin.Resolution
		check func(t *testing.T, p *process, c semel.Call)
	}{
		"to Succeeded": {
			admin.Resolution{To: store.Succeeded, Result: "found it"},
			func(t *testing.T, p *process, c semel.Call) {
				do(t.Context(), p, c, never(t)).want(t, "found it", true)
			},
		},
		"to Succeeded, the result unknown": {
			admin.Resolution{To: store.Succeeded},
			func(t *testing.T, p *process, c semel.Call) {
				if a := do(t.Context(), p, c, never(t)); !errors.Is(a.err, semel.ErrResultUnavailable) {
					t.Errorf("an asker got %v, want ErrResultUnavailable", a.err)
				}
			},
		},
		"to Succeeded, the result unstorable": {
			admin.Resolution{To: store.Succeeded, Result: func() {}},
			func(t *testing.T, p *process, c semel.Call) {
				if a := do(t.Context(), p, c, never(t)); !errors.Is(a.err, semel.ErrResultUnavailable) {
					t.Errorf("an asker got %v, want ErrResultUnavailable", a.err)
				}
			},
		},
		"to Failed": {
			admin.Resolution{To: store.Failed, Failure: failure},
			func(t *testing.T, p *process, c semel.Call) {
				do(t.Context(), p, c, never(t)).wantFailure(t, "no trace")
			},
		},
		"to Failed without more": {
			admin.Resolution{To: store.Failed},
			func(t *testing.T, p *process, c semel.Call) {
				do(t.Context(), p, c, never(t)).wantFailure(t, "resolved as failed")
			},
		},
		"to Pending": {
			admin.Resolution{To: store.Pending},
			func(t *testing.T, p *process, c semel.Call) {
				do(t.Context(), p, c, returns("again")).want(t, "again", false)
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				mem := memory.New(memory.Options{})
				op := plain("op", semel.OperationOptions[string]{Retention: time.Hour})
				call := op.Call(me, "k", "in")
				createExisting(t, mem, call, inDoubt)
				p := start(t, mem, semel.Options{Operations: []semel.Declared{op}})
				tt.r.ID, tt.r.Actor, tt.r.Reason = call.ID(), "ann", "asked the bank"
				r, err := admin.Resolve(t.Context(), p, tt.r)
				if err != nil || r.State != tt.r.To || r.Expire != time.Hour {
					t.Errorf("Resolve = %v, to expire in %v, %v; want %v in the operation's retention", r.State, r.Expire, err, tt.r.To)
				}
				p.seen.want(t, event.Resolved)
				wantNote(t, p, call, tt.r.To)
				tt.check(t, p, call)
				_, err = admin.Resolve(t.Context(), p, tt.r)
				check.ErrorIs(t, err, admin.ErrNotInDoubt, "Resolve again")
				wantNote(t, p, call, tt.r.To)
			})
		})
	}
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
	t.Parallel()
	for _, s := range existingStates() {
		if s == inDoubt {
			continue
		}
		t.Run(string(s), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				mem := memory.New(memory.Options{})
				call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
				createExisting(t, mem, call, s)
				before := record(t, mem, call)
				p := start(t, mem, semel.Options{})
				r := admin.Resolution{ID: call.ID(), To: store.Failed, Actor: "ann", Reason: "why not"}
				if _, err := admin.Resolve(t.Context(), p, r); !errors.Is(err, admin.ErrNotInDoubt) {
					t.Errorf("Resolve: %v, want ErrNotInDoubt", err)
				}
				if after := record(t, mem, call); after.Token != before.Token {
					t.Errorf("the current record is %+v, want %+v", after.Token, before.Token)
				}
			})
		})
	}
}

func TestResolveNeedsActorReasonAndResult(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
		createExisting(t, mem, call, inDoubt)
		good := admin.Resolution{ID: call.ID(), To: store.Failed, Actor: "ann", Reason: "why not"}
		for field, spoil := range map[string]func(*admin.Resolution){
			"Actor": func(r *admin.Resolution) { r.Actor = "" }, "Reason": func(r *admin.Resolution) { r.Reason = "" },
			"To": func(r *admin.Resolution) { r.To = store.InProgress },
		} {
			r := good
			spoil(&r)
			_, err := admin.Resolve(t.Context(), p, r)
			wantField(t, err, field)
		}
		wantState(t, mem, call, store.InDoubt)
	})
}

func TestResolveWithLostReply(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
		createExisting(t, mem, call, inDoubt)
		r := admin.Resolution{ID: call.ID(), To: store.Failed, Actor: "ann", Reason: "asked the bank"}
		for kind, f := range map[string]fault{"Get": {Before: errCut}, "SwapNoted": {Before: errCut}} {
			p.faults.Decide(func(r request) fault {
				if r.Method == kind {
					return f
				}
				return fault{}
			})
			if _, err := admin.Resolve(t.Context(), p, r); !errors.Is(err, semel.ErrUnavailable) || !errors.Is(err, errCut) {
				t.Errorf("Resolve: %v, want ErrUnavailable", err)
			}
		}
		p.faults.Decide(func(r request) fault { return fault{Busy: r.Method == "SwapNoted"} })
		if _, err := admin.Resolve(t.Context(), p, r); !errors.Is(err, semel.ErrInProgress) {
			t.Errorf("Resolve: %v, want ErrInProgress", err)
		}
		p.faults.Decide(func(r request) fault {
			if r.Method == "SwapNoted" {
				return fault{Result: &store.SwapResult{Err: errCut}}
			}
			return fault{}
		})
		if _, err := admin.Resolve(t.Context(), p, r); !errors.Is(err, errCut) {
			t.Errorf("Resolve: %v, want the store's reason", err)
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
		wantState(t, mem, call, store.InDoubt)
	})
}

// TestResolveLosesToTheLateLeader: the late leader settles the record before the
// operator resolves it.
func TestResolveLosesToTheLateLeader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		p, person := start(t, mem, semel.Options{}), start(t, mem, semel.Options{})
		call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
		gate := make(chan struct{})
		do(t.Context(), p, call, func(context.Context) (string, error) {
			setInDoubt(t, mem, call)
			person.faults.Decide(func(r request) fault {
				if r.Method == "SwapNoted" {
					return fault{Gate: gate}
				}
				return fault{}
			})
			go func() {
				r := admin.Resolution{ID: call.ID(), To: store.Failed, Actor: "ann", Reason: "thought so"}
				if now, err := admin.Resolve(t.Context(), person, r); !errors.Is(err, admin.ErrNotInDoubt) || now.State != store.Succeeded {
					t.Errorf("Resolve = %v, %v, want ErrNotInDoubt and the current record", now.State, err)
				}
			}()
			synctest.Wait()
			return "v", nil
		}).want(t, "v", false)
		close(gate)
		synctest.Wait()
		wantState(t, mem, call, store.Succeeded)
		if notes, err := admin.Notes(t.Context(), p, call.ID()); err != nil || len(notes) != 0 {
			t.Errorf("Notes = %d, %v, want none of a superseded change", len(notes), err)
		}
	})
}

// TestResolveWithoutNotes: the store is no Auditor.
func TestResolveWithoutNotes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
		createExisting(t, mem, call, inDoubt)
		p := startPlain(t, newFaulty(mem), semel.Options{})
		r, err := admin.Resolve(t.Context(), p, admin.Resolution{ID: call.ID(), To: store.Pending, Actor: "ann", Reason: "looked"})
		check.Result(r.State, err)(t, store.Pending, "Resolve")
		if notes, err := admin.Notes(t.Context(), p, call.ID()); notes != nil || err != nil {
			t.Errorf("Notes = %v, %v, want none", notes, err)
		}
	})
}

func TestPurge(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		for _, s := range existingStates() {
			op := plain("op", semel.OperationOptions[string]{Policy: semel.Keyed()})
			createExisting(t, mem, op.Call(me, strings.ReplaceAll(string(s), " ", "_"), "in"), s)
		}
		p := start(t, mem, semel.Options{})
		pass(48 * time.Hour)
		check.Result(admin.Purge(t.Context(), p, 2))(t, 2, "Purge(2)")
		check.Result(admin.Purge(t.Context(), p, 10))(t, 1, "Purge (want the rest of Pending, Succeeded and Failed)")
		left, err := admin.List(t.Context(), p, store.Query{})
		if err != nil || len(left) != 3 {
			t.Errorf("%d records are left, %v; want the two InProgress and the one InDoubt", len(left), err)
		}
	})
}
