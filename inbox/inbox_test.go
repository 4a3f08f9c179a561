package inbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// TestMessagesWithoutIdentity are rejected, and not acknowledged as if they had
// been handled.
func TestMessagesWithoutIdentity(t *testing.T) {
	t.Parallel()
	r := inMemory(t)
	e := r.engine(t, semel.Options{})
	for field, m := range map[string]inbox.Message[string]{
		"Producer": newMessage("", "1", "a"),
		"ID":       newMessage("shop", "", "a"),
	} {
		for _, mode := range []inbox.Mode{inbox.Pessimistic, inbox.Leased} {
			in := newInbox(t, "ship", inbox.Options[string]{Mode: mode})
			got := handleIn(t.Context(), in, e, m, func() error { t.Error("the handler ran"); return nil })
			want(t, got, inbox.Result{Decision: inbox.Reject})
			wantField(t, got.Err, field)
		}
	}
	in := newInbox(t, "ship", inbox.Options[string]{})
	for n, decision := range map[int]inbox.Decision{240: inbox.Ack, 241: inbox.Reject} {
		m := newMessage(strings.Repeat("p", 100), strings.Repeat("i", n-100), "a")
		got := handleIn(t.Context(), in, e, m, func() error { return nil })
		if got.Decision != decision {
			t.Errorf("names of %d bytes: %+v, want %v", n, got, decision)
		}
		if decision == inbox.Reject {
			wantField(t, got.Err, "ID")
		}
	}
	stamped := newInbox(t, "ship_stamped", inbox.Options[string]{Stamped: true})
	longest := newMessage(strings.Repeat("p", 100), strings.Repeat("i", 140), "a")
	longest.Sent = time.Now()
	want(t, handleIn(t.Context(), stamped, e, longest, func() error { return nil }), inbox.Result{Decision: inbox.Ack})
	for _, sent := range []time.Time{{}, time.UnixMilli(-1)} {
		m := newMessage("shop", "1", "a")
		m.Sent = sent
		got := handleIn(t.Context(), stamped, e, m, func() error { return nil })
		want(t, got, inbox.Result{Decision: inbox.Reject})
		wantField(t, got.Err, "Sent")
	}
}

// TestKeysAreDistinct: no two messages have the same key, even if their names
// contain the separators of keys.
func TestKeysAreDistinct(t *testing.T) {
	t.Parallel()
	names := []string{""}
	for from := 0; len(names[from]) < 3; from++ {
		for _, c := range []string{"1", "2", ":", "@", "a"} {
			names = append(names, names[from]+c)
		}
	}
	for _, stamped := range []bool{false, true} {
		in := newInbox(t, "ship", inbox.Options[string]{Stamped: stamped})
		owner := make(map[string]string)
		for _, producer := range names[1:] {
			for _, id := range names[1:] {
				m := newMessage(producer, id, "a")
				m.Sent = time.UnixMilli(1)
				c := check.Must(in.Call(m))(t)
				if other, taken := owner[c.Key()]; taken {
					t.Errorf("%q of %q has the same key as %s", id, producer, other)
				}
				owner[c.Key()] = fmt.Sprintf("%q of %q", id, producer)
			}
		}
	}
}

// TestUnreadablePayload: a payload whose fingerprint cannot be computed is an
// error of the message.
func TestUnreadablePayload(t *testing.T) {
	t.Parallel()
	in := check.Must(inbox.New("ship", inbox.Options[any]{Group: "shipping"}))(t)
	m := inbox.Message[any]{Producer: "shop", ID: "1", Payload: func() {}}
	got := inbox.HandleTx(t.Context(), in, inMemory(t).engine(t, semel.Options{}), m, nil)
	want(t, got, inbox.Result{Decision: inbox.Reject})
	wantField(t, got.Err, "Input")
}

// TestOldAndFutureMessages are rejected by the producer's time, in the ID or in
// Sent. A handled message is a duplicate, however old it is.
func TestOldAndFutureMessages(t *testing.T) {
	t.Parallel()
	uuid := func(at time.Time) inbox.Message[string] {
		ms := at.UnixMilli()
		return newMessage("shop", fmt.Sprintf("%08x-%04x-7000-8000-000000000000", ms>>16, ms&0xffff), "a")
	}
	stamp := func(at time.Time) inbox.Message[string] {
		m := newMessage("shop", "1", "a")
		m.Sent = at
		return m
	}
	for name, test := range map[string]struct {
		o  inbox.Options[string]
		at func(time.Time) inbox.Message[string]
	}{
		"UUIDv7":  {inbox.Options[string]{Time: semel.UUIDv7Time}, uuid},
		"Stamped": {inbox.Options[string]{Stamped: true}, stamp},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.o.Retention, test.o.Skew = time.Hour, time.Minute
			in, e := newInbox(t, "ship", test.o), inMemory(t).engine(t, semel.Options{})
			deliver := func(at time.Time) inbox.Result {
				return handleIn(t.Context(), in, e, test.at(at), func() error { return nil })
			}
			now := time.Now()
			for _, at := range []time.Time{now.Add(-2 * time.Hour), now.Add(10 * time.Minute)} {
				got := deliver(at)
				want(t, got, inbox.Result{Decision: inbox.Reject})
				wantErr(t, got, semel.ErrKeyExpired)
			}
			want(t, deliver(now), inbox.Result{Decision: inbox.Ack})
			want(t, deliver(now), inbox.Result{Decision: inbox.Ack, Duplicate: true})
		})
	}
	in := newInbox(t, "ship", inbox.Options[string]{Time: semel.UUIDv7Time})
	got := handleIn(t.Context(), in, inMemory(t).engine(t, semel.Options{}), newMessage("shop", "1", "a"), func() error { return nil })
	want(t, got, inbox.Result{Decision: inbox.Reject})
	wantField(t, got.Err, "ID")
}

// TestPayloadHash: the payload is the ID only if the caller uses PayloadHash.
func TestPayloadHash(t *testing.T) {
	t.Parallel()
	a, b := inbox.PayloadHash([]byte("a")), inbox.PayloadHash([]byte("b"))
	if a == b || a != inbox.PayloadHash([]byte("a")) || a != "sha256-ca978112ca1bbdcafac231b39a23dc4d" {
		t.Errorf("the hashes are %s and %s", a, b)
	}
}

// TestReplies: each duplicate gets the same reply. A reply that cannot be
// stored is reported.
func TestReplies(t *testing.T) {
	t.Parallel()
	r := inMemory(t)
	e := r.engine(t, semel.Options{})
	const large = 2 << 20 // the store keeps 1 MiB
	for _, mode := range []inbox.Mode{inbox.Pessimistic, inbox.Leased} {
		in := newInbox(t, "ship_"+mode.String(), inbox.Options[string]{Mode: mode})
		reply := func(m inbox.Message[string], n int) (string, inbox.Result) {
			answer := strings.Repeat("x", n)
			if mode == inbox.Leased {
				return inbox.Reply(t.Context(), in, e, m, func(context.Context, string) (string, error) { return answer, nil })
			}
			return inbox.ReplyTx(t.Context(), in, e, m, replyTx(r, answer))
		}
		for n, duplicate := range map[int]inbox.Result{
			3:     {Decision: inbox.Ack, Duplicate: true},
			0:     {Decision: inbox.Ack, Duplicate: true},
			large: {Decision: inbox.Reject, Duplicate: true},
		} {
			m := newMessage("shop", fmt.Sprint(n), "a")
			v, got := reply(m, n)
			want(t, got, inbox.Result{Decision: inbox.Ack})
			check.Equal(t, len(v), n, "%v: the reply: bytes", mode)
			v, got = reply(m, 7)
			want(t, got, duplicate)
			if duplicate.Decision == inbox.Ack && len(v) != n {
				t.Errorf("%v: the duplicate's reply has %d bytes, want %d", mode, len(v), n)
			}
			if duplicate.Decision == inbox.Reject {
				wantErr(t, got, semel.ErrResultUnavailable)
			}
		}
	}
}

func replyTx[Tx any](_ *rig[Tx], answer string) func(context.Context, Tx, string) (string, error) {
	return func(context.Context, Tx, string) (string, error) { return answer, nil }
}

// TestHandlerThatCommits: a handler that commits its transaction itself has had
// its effect, and its message is not handled again.
func TestHandlerThatCommits(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]error{"and succeeds": nil, "and fails": errHandler} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := inSQLite(t)
			in, e := newInbox(t, "ship", inbox.Options[string]{}), r.engine(t, semel.Options{})
			deliver := func() inbox.Result {
				return inbox.HandleTx(t.Context(), in, e, newMessage("shop", "1", "a"), func(ctx context.Context, tx *sql.Tx, payload string) error {
					if err := r.effect(ctx, tx, payload); err != nil {
						return err
					}
					if err := tx.Commit(); err != nil {
						return err
					}
					return ends
				})
			}
			want(t, deliver(), inbox.Result{Decision: inbox.Ack})
			want(t, deliver(), inbox.Result{Decision: inbox.Ack, Duplicate: true})
			check.Equal(t, r.effects("a"), 1, "effects")
		})
	}
}

// TestInvalidOptions: the error names the invalid option.
func TestInvalidOptions(t *testing.T) {
	t.Parallel()
	for field, o := range map[string]inbox.Options[string]{
		"Group":      {},
		"Mode":       {Group: "g", Mode: 3},
		"Policy":     {Group: "g", Policy: semel.Hold()},
		"Classify":   {Group: "g", Classify: func(error) store.Verdict { return store.Unknown }},
		"Lease":      {Group: "g", Mode: inbox.Optimistic, Lease: time.Second},
		"Heartbeat":  {Group: "g", Heartbeat: time.Second},
		"Stamped":    {Group: "g", Stamped: true, Time: semel.ULIDTime},
		"Retry":      {Group: "g", Generation: time.Hour, Retry: semel.Retry{MaxErrors: 3}},
		"Generation": {Group: "g", Generation: time.Hour, Stamped: true},
	} {
		_, err := inbox.New("ship", o)
		wantField(t, err, field)
	}
	_, err := inbox.New("ship", inbox.Options[string]{Group: strings.Repeat("g", 1001)})
	wantField(t, err, "Group")
	_, err = inbox.New("ship", inbox.Options[string]{Group: "g", Mode: inbox.Leased, Policy: semel.Atomic()})
	wantField(t, err, "Lease")
	for field, o := range map[string]inbox.Options[string]{
		"Retry.MaxErrors": {Group: "g", Retry: semel.Retry{MaxErrors: -1}},
		"Retention":       {Group: "g", Retention: time.Hour, Redelivery: time.Hour},
		"Generation":      {Group: "g", Generation: time.Second},
	} {
		in, err := inbox.New("ship", o)
		if err != nil {
			t.Errorf("%s: %v", field, err)
			continue
		}
		_, err = semel.New(inMemory(t).store, semel.Options{Survive: store.NoFailure, Operations: []semel.Declared{in.Operation()}})
		wantField(t, err, field)
		e := inMemory(t).engine(t, semel.Options{})
		got := handleIn(t.Context(), in, e, newMessage("shop", "1", "a"), func() error { t.Error("the handler ran"); return nil })
		want(t, got, inbox.Result{Decision: inbox.Redeliver})
		wantField(t, got.Err, field)
	}
}

// TestGenerations: a message without a time still has its record after the end
// of its generation, and no longer after the end of the next one. Its failures
// are not stored.
func TestGenerations(t *testing.T) {
	t.Parallel()
	for _, mode := range transactional() {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			r, stores := inMemoryAt()
			now := &clock{now: time.Now().Truncate(time.Hour).Add(59 * time.Minute)}
			e := r.engine(t, semel.Options{Clock: now.Now})
			in := check.Must(inbox.New("ship", inbox.Options[string]{Group: "shipping", Mode: mode, Generation: time.Hour}))(t)
			deliver := func(ends error) inbox.Result {
				return handleIn(t.Context(), in, e, newMessage("shop", "1", "a"), func() error { return ends })
			}
			for range 20 {
				want(t, deliver(errHandler), inbox.Result{Decision: inbox.Redeliver})
			}
			if got := deliver(semel.Final(errors.New("no"))); got.Decision == inbox.Ack {
				t.Errorf("a final failure: %+v", got)
			}
			want(t, deliver(nil), inbox.Result{Decision: inbox.Ack})
			for range 2 {
				want(t, deliver(errHandler), inbox.Result{Decision: inbox.Ack, Duplicate: true})
				now.advance(time.Hour)
				stores.advance(time.Hour)
			}
			want(t, deliver(nil), inbox.Result{Decision: inbox.Ack})
		})
	}
}
