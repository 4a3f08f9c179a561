package ops_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
)

// The tasks mail and sms. mail waits an hour after an error, and sms fails for
// good after the first. The program under test does not know them.
var (
	mail = semel.Define("mail", semel.OperationOptions[string]{
		Policy: semel.AtLeastOnce(), Retry: &semel.Retry{Delay: func(int) time.Duration { return time.Hour }},
	})
	sms = semel.Define("sms", semel.OperationOptions[string]{Policy: semel.AtLeastOnce(), Retry: &semel.Retry{MaxErrors: 1}})
)

// errSecret is an error whose text must not be printed.
var errSecret = errors.New("dial password-s3cret\x1b[2J")

// enqueue enqueues c.
func (s *testDB) enqueue(t *testing.T, c semel.Call, o semel.EnqueueOptions) string {
	t.Helper()
	if added, err := semel.Enqueue(t.Context(), s.engine, c, o); !added || err != nil {
		t.Fatalf("Enqueue = %v, %v", added, err)
	}
	return c.ID().String()
}

// refuse runs c with a function that fails and had no effect.
func (s *testDB) refuse(t *testing.T, c semel.Call, err error) string {
	t.Helper()
	if _, _, got := s.do(t, c, "", semel.NotCommitted(err)); got == nil {
		t.Fatal("the failure was not returned")
	}
	return c.ID().String()
}

func mailOf(key string) semel.Call { return mail.Call(someScope(), key+"-s3cret", "input-s3cret") }
func smsOf(key string) semel.Call  { return sms.Call(someScope(), key+"-s3cret", "input-s3cret") }

// changedOutput is the --json output of redrive, cancel and reschedule.
type changedOutput struct {
	ID, State, Was, Actor, Reason string
	CancelRequest                 string `json:"asked"`
	Attempt                       uint32
	Due                           float64 `json:"due_seconds"`
	Progress                      struct{ Errors, Crashes, Redrives int }
}

func (s *testDB) change(t *testing.T, args ...string) (c changedOutput) {
	t.Helper()
	out := s.must(t, append(args, "--reason", " asked the team ", "--actor", "eve", "--json")...)
	check.Require(t, json.Unmarshal([]byte(out), &c), "%v", args)
	if c.Actor != "eve" || c.Reason != "asked the team" {
		t.Errorf("%v wrote actor %q and reason %q", args, c.Actor, c.Reason)
	}
	return c
}

// wantNotes checks the states in the notes about a record, all of them by eve.
func (s *testDB) wantNotes(t *testing.T, id string, want ...string) {
	t.Helper()
	var shown struct {
		Notes []struct{ Actor, Reason, From, To string }
	}
	check.Require(t, json.Unmarshal([]byte(s.must(t, "show", id, "--json")), &shown), "show --json")
	var got []string
	for _, n := range shown.Notes {
		got = append(got, n.From+" to "+n.To)
		if n.Actor != "eve" || n.Reason != "asked the team" {
			t.Errorf("noted is %+v", n)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

// TestCallersKeyIsNotRedriven: the callers were told that it failed. The record
// of a dead letter is marked. For any other message, which keeps no input,
// --message is needed.
func TestCallersKeyIsNotRedriven(t *testing.T) {
	t.Parallel()
	everyDatabase(t, func(t *testing.T, s *testDB) {
		call := callOf("k")
		failure := &semel.Failure{Code: "no_funds", Message: "not enough money"}
		if _, _, err := s.do(t, call, "", semel.Final(failure)); err == nil {
			t.Fatal("the failure was not returned")
		}
		id := call.ID().String()
		s.runOn(t, "redrive", id, "--reason", "r").want(t, exit.Refused, "was not enqueued")
		_, _, err := s.do(t, call, "it ran", nil)
		if f, ok := errtype.Find[*semel.Failure](err); !ok || f.Code != "no_funds" {
			t.Errorf("retry: %v, want the stored failure", err)
		}
		s.wantNotes(t, id)

		inbox := semel.Define("inbox", semel.OperationOptions[string]{
			Policy: semel.AtLeastOnce(), Retry: &semel.Retry{MaxErrors: 1, Redelivered: true},
		})
		message := inbox.Call(someScope(), "m", "in")
		id = s.refuse(t, message, errDown)
		if c := s.change(t, "redrive", id); c.State != "Pending" {
			t.Errorf("redrive of a message that is a dead letter wrote %+v", c)
		}
		s.change(t, "cancel", id) // its record does not show that it is a message
		s.runOn(t, "redrive", id, "--reason", "r").want(t, exit.Refused, "--message")
		c := s.change(t, "redrive", id, "--message", "--delay", "1h")
		if c.State != "Pending" || c.Due < 3500 {
			t.Errorf("redrive --message --delay 1h wrote %+v", c)
		}
		if c = s.change(t, "reschedule", id, "--delay", "0"); c.Due > 0 {
			t.Errorf("reschedule wrote %+v", c)
		}
		if v, replayed, err := s.do(t, message, "handled", nil); v != "handled" || replayed || err != nil {
			t.Errorf("delivered again: %q, replayed %v, %v", v, replayed, err)
		}
	})
}

// TestCancelInProgress: the worker sees the request with its next heartbeat.
func TestCancelInProgress(t *testing.T) {
	t.Parallel()
	everyDatabase(t, func(t *testing.T, s *testDB) {
		call := mailOf("running")
		id := s.enqueue(t, call, semel.EnqueueOptions{})
		worker := s.withOperations(t, mail)
		attempts, err := adapter.Dequeue(t.Context(), worker, mail, 1)
		if err != nil || len(attempts) != 1 {
			t.Fatalf("Dequeue = %v, %v", attempts, err)
		}
		c := s.change(t, "cancel", id)
		if c.State != "InProgress" || c.CancelRequest == "" {
			t.Errorf("cancel wrote %+v, want the record of the request", c)
		}
		s.wantNotes(t, c.CancelRequest, "Absent to Pending")
		s.wantNotes(t, id)
		if out := s.must(t, "cancel", id, "--reason", "r"); !strings.Contains(out, "requested to stop, by record "+c.CancelRequest) {
			t.Errorf("a second cancel wrote %q", out)
		}
		adapter.RenewLeases(t.Context(), worker, attempts)
		if why := context.Cause(attempts[0].Context()); !errors.Is(why, semel.ErrCancelled) || !strings.Contains(why.Error(), "asked the team") {
			t.Errorf("the cause is %v, want ErrCancelled and the reason", why)
		}
		_, _ = attempts[0].End(nil, semel.NotCommitted(errDown))
		check.Equal(t, s.state(t, call), store.Failed, "the record")
	})
}
