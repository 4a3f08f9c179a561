package inbox_test

import (
	"context"
	"database/sql"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/store/storetest"
)

// rig is a store with a table of effects without a unique constraint, so that
// repeated effects show.
type rig[Tx any] struct {
	store   store.TxStore[Tx]
	effect  func(ctx context.Context, tx Tx, name string) error
	effects func(name string) int
}

// engine returns an engine of a new process over the rig's store.
func (r *rig[Tx]) engine(t *testing.T, o semel.Options) *semel.Engine[Tx] {
	t.Helper()
	return engineOver(t, r.store, o)
}

func engineOver[Tx any](t *testing.T, s store.TxStore[Tx], o semel.Options) *semel.Engine[Tx] {
	t.Helper()
	o.Survive = store.NoFailure
	if o.RecordTimeout == 0 {
		o.RecordTimeout = time.Minute // a slow machine does not end the calls of the tests
	}
	e := check.Must(semel.New(s, o))(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		check.NoError(t, e.Close(ctx), "close the engine")
	})
	return e
}

// clock is a store's clock that tests advance.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func inMemory(*testing.T) *rig[*memory.Tx] {
	r, _ := inMemoryAt()
	return r
}

func inMemoryAt() (*rig[*memory.Tx], *clock) {
	c := &clock{now: time.Now()}
	return newRig(ledger.Memory(memory.Options{Now: c.Now}), ""), c
}

func inSQLite(t *testing.T) *rig[*sql.Tx] {
	t.Helper()
	return newRig(ledger.SQLite(t), "")
}

// inMariaDB opens one database of a server.
func inMariaDB(t *testing.T) *rig[*sql.Tx] {
	t.Helper()
	name := realtest.MariaDB(t).Database(t)
	return newRig(ledger.MariaDB(t, name, name), "")
}

// inPostgres opens one database of a server for all tests that use it.
func inPostgres(t *testing.T) func(*testing.T) *rig[pgx.Tx] {
	t.Helper()
	url := realtest.Postgres(t).Database(t)
	s := ledger.Postgres(t, url, url, postgres.Options{})
	return func(t *testing.T) *rig[pgx.Tx] { return newRig(s, t.Name()) }
}

// newRig returns a rig over s, whose effects have names with a prefix.
func newRig[Tx any](s storetest.Subject[Tx], prefix string) *rig[Tx] {
	return &rig[Tx]{
		store:   s.Store,
		effect:  func(ctx context.Context, tx Tx, name string) error { return s.Effect(ctx, tx, prefix+name) },
		effects: func(name string) int { return s.Effects(prefix + name) },
	}
}

// newInbox returns an inbox whose failed messages may be redelivered at once.
func newInbox(t *testing.T, kind string, o inbox.Options[string]) *inbox.Inbox[string] {
	t.Helper()
	if o.Group == "" {
		o.Group = "shipping"
	}
	if o.Retry.Delay == nil {
		o.Retry.Delay = func(int) time.Duration { return 0 }
	}
	in, err := inbox.New(kind+"@"+t.Name(), o) // tests share stores
	check.Require(t, err)
	return in
}

func newMessage(producer, id, payload string) inbox.Message[string] {
	return inbox.Message[string]{Producer: producer, ID: id, Payload: payload}
}

// want fails the test unless got equals want, apart from Err, After and ID.
func want(t *testing.T, got, want inbox.Result) {
	t.Helper()
	if after := got.After; (got.Decision == inbox.Redeliver) != (after >= 100*time.Millisecond) {
		t.Errorf("%v has After %v", got.Decision, after)
	}
	whole := got
	got.Err, got.After, got.ID = nil, 0, store.ID{}
	if got != want {
		t.Errorf("got %+v, want %+v", whole, want)
	}
}

// wantErr fails the test unless the result's error is target.
func wantErr(t *testing.T, got inbox.Result, target error) {
	t.Helper()
	check.ErrorIs(t, got.Err, target, "the error")
}

// wantField fails the test unless the error names the field.
func wantField(t *testing.T, err error, field string) {
	t.Helper()
	if f, ok := errtype.Find[*semel.FieldError](err); !ok || f.Field != field {
		t.Errorf("the error is %v, want one about %s", err, field)
	}
}

func transactional() []inbox.Mode { return []inbox.Mode{inbox.Pessimistic, inbox.Optimistic} }
