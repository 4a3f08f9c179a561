package semel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// log is the output of an slog handler, and the callers' errors.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
	errs []error
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) keep(a answer) answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = append(l.errs, a.err)
	return a
}

// keepErr keeps the error of a call that returns something else too.
func (l *log) keepErr(_ any, err error) { l.keep(answer{err: err}) }

func (l *log) observer() event.Observer {
	return event.Slog(slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug})))
}

// everyKind returns the kinds of events that package event declares, and whether the comment
// of each says that it is an alarm.
func everyKind(t *testing.T) map[event.Kind]bool {
	t.Helper()
	text := check.Must(os.ReadFile("event/event.go"))(t)
	kinds := map[event.Kind]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\t\w+\s+Kind = "(\w+)"\s+// (alarm:)?`).FindAllSubmatch(text, -1) {
		kinds[event.Kind(m[1])] = len(m[2]) > 0
	}
	return kinds
}

const (
	canaryKey    = "canary-key"
	canaryScope  = "canary-scope"
	canaryInput  = "canary-input"
	canaryResult = "canary-result"
)

// TestNoKeyIsEverLogged runs keys through every event: neither logs nor errors
// contain a key, scope, body or owner.
func TestNoKeyIsEverLogged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := new(log)
		for name, o := range map[string]semel.OperationOptions[string]{
			"hold": {}, "keyed": {Policy: semel.Keyed()}, "atLeastOnce": {Policy: semel.AtLeastOnce()},
			"heal": {Policy: semel.Heal(finds(canaryResult, true))}, "atomic": {Policy: semel.Atomic(), Lease: lease},
		} {
			for _, s := range existingStates() {
				for fault, plan := range canaryPlans() {
					op := plain(name, o)
					canaryRun(t, l, op, op.Call(semel.ScopeOf(canaryScope, string(s), fault), canaryKey, canaryInput), s, plan)
				}
			}
		}
		canaryCorners(t, l)
		canaryQueue(t, l)
		wantNoCanary(t, l)
		for kind := range everyKind(t) {
			if kind == event.Retried || kind == event.Parked {
				continue // conflicts of transactions and an outbox, which this store does not have
			}
			if !strings.Contains(l.text.String(), `"event":"`+string(kind)+`"`) {
				t.Errorf("%q was not seen, want the test to drive it", kind)
			}
		}
	})
}

func canaryPlans() map[string]func(request) fault {
	return map[string]func(request) fault{
		"fine":    nil,
		"lost":    firstReplyLost(),
		"unknown": commits(commitDropped()),
		"proven":  commits(commitApplied()),
		"ends":    func(r request) fault { return fault{Busy: r.To().Final()} },
	}
}

// canaryRun asks for the key in every way there is.
func canaryRun(t *testing.T, l *log, op *semel.Operation[string], call semel.Call, s existingState, plan func(request) fault) {
	t.Helper()
	mem := memory.New(memory.Options{})
	createExisting(t, mem, call, s)
	p := start(t, mem, semel.Options{Observer: l.observer(), Operations: []semel.Declared{op}, RecordTimeout: time.Second})
	p.faults.Decide(plan)
	l.keep(do(t.Context(), p, op.Call(call.Scope(), canaryKey, "canary-input 2"), p.run(returns(canaryResult))))
	l.keep(do(t.Context(), p, call, fails(semel.NotCommitted(errBoom))))
	l.keep(doTx(t.Context(), p, call, func(context.Context, *memory.Tx) (string, error) { return canaryResult, errBoom }))
	l.keep(doTx(t.Context(), p, call, puts("e", canaryResult)))
	l.keep(do(t.Context(), p, call, fails(errBoom)))
	l.keepErr(admin.Sweep(t.Context(), p, 10))
	for _, to := range []store.State{store.Pending, store.Succeeded} {
		l.keepErr(admin.Resolve(t.Context(), p, admin.Resolution{ID: call.ID(), To: to, Result: canaryResult, Actor: "ann", Reason: "canary-reason"}))
	}
	l.keep(do(t.Context(), p, call, returns(canaryResult)))
	l.keep(do(t.Context(), p, call, fails(semel.Final(errBoom))))
	p.faults.Decide(nil)
	pass(time.Minute)
}

// canaryCorners drives what a plain run does not come by.
func canaryCorners(t *testing.T, l *log) {
	t.Helper()
	p, mem := solo(t, semel.Options{Observer: l.observer(), MaxUnrecorded: 1, RecordTimeout: time.Second})
	other := start(t, mem, semel.Options{Observer: l.observer()})
	scope := semel.ScopeOf(canaryScope)
	hold := plain("hold", semel.OperationOptions[string]{})
	l.keep(do(t.Context(), p, hold.Call(scope, canaryKey+"1", canaryInput), func(context.Context) (string, error) {
		setInDoubt(t, mem, hold.Call(scope, canaryKey+"1", canaryInput))
		pass(lease) // lease_lost
		return canaryResult, nil
	})).want(t, canaryResult, false) // settled
	l.keep(do(t.Context(), p, hold.Call(scope, canaryKey+"altered", canaryInput), returns(canaryResult+"\xff"))).
		want(t, canaryResult+"\ufffd", false) // result_altered
	again := plain("again", semel.OperationOptions[string]{Policy: semel.AtLeastOnce()}).Call(scope, canaryKey, canaryInput)
	l.keep(do(t.Context(), p, again, func(context.Context) (string, error) {
		p.faults.Decide(func(request) fault { return fault{Before: errCut} })
		pass(2 * lease)
		a, _, err := adapter.Begin(t.Context(), other, again)
		check.NoError(t, err, "Begin")
		t.Cleanup(a.Abandon)
		p.faults.Decide(nil)
		return canaryResult, nil
	})).wantErr(t, semel.ErrInProgress) // conflict
	waits := plain("waits", semel.OperationOptions[string]{Wait: time.Second}).Call(scope, canaryKey, canaryInput)
	l.keep(do(t.Context(), p, waits, func(context.Context) (string, error) {
		l.keep(do(t.Context(), other, waits, returns(canaryResult))).wantErr(t, semel.ErrInProgress) // waited
		return canaryResult, nil
	}))
	atomic := plain("atomic", semel.OperationOptions[string]{Policy: semel.Atomic()}).Call(scope, canaryKey, canaryInput)
	l.keep(do(t.Context(), p, atomic, func(ctx context.Context) (string, error) {
		_, err := semel.InTx(ctx, p.Engine, func(context.Context, *memory.Tx) (any, error) {
			return map[string]any{canaryResult: func() {}}, nil // tombstone
		})
		check.NoError(t, err, "InTx")
		return "", errBoom // after_outcome
	}))
	l.keep(do(t.Context(), p, hold.Call(scope, canaryKey+"5", canaryInput), fails(semel.Final(errBoom)))).wantFailure(t, "boom")
	p.faults.Decide(commits(commitApplied()))
	l.keep(doTx(t.Context(), p, hold.Call(scope, canaryKey+"6", canaryInput), puts("e", canaryResult))).want(t, canaryResult, false)
	p.faults.Decide(func(r request) fault { return fault{Hang: r.To() == store.Succeeded} })
	for _, key := range []string{"2", "3", "4"} { // late_dropped
		l.keep(do(t.Context(), p, hold.Call(scope, canaryKey+key, canaryInput), returns(canaryResult)))
	}
	p.faults.Decide(nil)
	for _, c := range []semel.Call{
		hold.Call(semel.Scope{}, canaryKey, canaryInput), hold.Call(scope, strings.Repeat(canaryKey, 99), canaryInput),
		hold.Call(semel.ScopeOf(strings.Repeat(canaryScope, 999)), canaryKey, canaryInput),
		plain("timed", semel.OperationOptions[string]{KeyTime: semel.ULIDTime}).Call(scope, canaryKey, canaryInput),
	} {
		l.keep(do(t.Context(), p, c, returns(canaryResult)))
	}
	synctest.Wait()
}

// canaryQueue drives what is done to records that wait or were left.
func canaryQueue(t *testing.T, l *log) {
	t.Helper()
	op := plain("queued", semel.OperationOptions[string]{Policy: semel.Keyed(), Retry: &semel.Retry{}})
	call := op.Call(semel.ScopeOf(canaryScope), canaryKey, canaryInput)
	p, mem := solo(t, semel.Options{Observer: l.observer(), Operations: []semel.Declared{op}})
	claimAndCrash(t, start(t, mem, semel.Options{}), op.Call(semel.ScopeOf(canaryScope), canaryKey+"1", canaryInput))
	pass(time.Minute)
	l.keepErr(admin.Sweep(t.Context(), p, 10))
	l.keepErr(semel.Enqueue(t.Context(), p, call, semel.EnqueueOptions{}))
	l.keepErr(admin.Cancel(t.Context(), p, call.ID(), "canary-reason"))
	l.keepErr(admin.Redrive(t.Context(), p, admin.RedriveRequest{ID: call.ID(), Actor: "canary-actor", Reason: "canary-reason"}))
	message := plain("message", semel.OperationOptions[string]{Policy: semel.Keyed(), Retry: &semel.Retry{Redelivered: true, MaxErrors: 1}})
	l.keep(do(t.Context(), p, message.Call(semel.ScopeOf(canaryScope), canaryKey+"2", canaryInput), fails(errBoom)))              // exhausted
	l.keep(do(t.Context(), p, message.Call(semel.ScopeOf(canaryScope), canaryKey+"3", canaryInput), fails(semel.Final(errBoom)))) // rejected
}

func wantNoCanary(t *testing.T, l *log) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, "canary") {
			t.Errorf("logged: %s", line)
		}
	}
	for _, err := range l.errs {
		if err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("error: %v", err)
		}
	}
	if l.text.Len() == 0 || len(l.errs) == 0 {
		t.Error("nothing was logged or returned")
	}
}

// TestSlogObserver: each kind of event has the level that docs/operations.md says, an
// alarm is an error and nothing else is, and each line names the operation and the
// record. The comment of a kind says that it is an alarm if it is one, and the page what to do.
func TestSlogObserver(t *testing.T) {
	t.Parallel()
	page, levels, kinds := string(check.Must(os.ReadFile("docs/operations.md"))(t)), map[string]string{}, everyKind(t)
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (DEBUG|INFO|WARN|ERROR) \\|").FindAllStringSubmatch(page, -1) {
		levels[m[1]] = m[2]
	}
	_, actions, _ := strings.Cut(page, "\n| alarm | do |\n")
	for kind := range levels {
		if _, ok := kinds[event.Kind(kind)]; !ok {
			t.Errorf("docs/operations.md has %q, which is no kind of event", kind)
		}
	}
	if !kinds[event.Conflict] {
		t.Error("a conflict is not marked as an alarm: this test looks in the wrong place")
	}
	for kind, alarm := range kinds {
		if alarm && !strings.Contains(actions, "\n| `"+string(kind)+"` | ") {
			t.Errorf("docs/operations.md does not say what to do about %s", kind)
		}
		l := new(log)
		e := event.Event{Kind: kind, Operation: "op", ID: store.ID{0xab}, Attempt: 3, State: store.InDoubt, Err: errBoom, Elapsed: time.Second}
		l.observer().Observe(t.Context(), e)
		var line map[string]any
		check.Require(t, json.Unmarshal(l.text.Bytes(), &line), "%q logged %q", kind, l.text.String())
		want := levels[string(kind)]
		if line["level"] != want || e.Alarm() != (want == "ERROR") || e.Alarm() != alarm {
			t.Errorf("%q is logged as %v, want %s; Alarm() = %v, and its comment says %v", kind, line["level"], want, e.Alarm(), alarm)
		}
		if line["event"] != string(kind) || line["operation"] != "op" || line["id"] != "ab"+strings.Repeat("0", 30) ||
			line["attempt"] != 3.0 || line["state"] != "InDoubt" || line["error"] != "boom" || line["elapsed"] != 1e9 {
			t.Errorf("logged %v", line)
		}
	}
	for name, err := range map[string]error{"a snooze": semel.Snooze(time.Second), "no error": nil} {
		l := new(log)
		l.observer().Observe(t.Context(), event.Event{Kind: event.Released, Err: err})
		text := l.text.String()
		if !strings.Contains(text, `"level":"DEBUG"`) || strings.Contains(text, "elapsed") || strings.Contains(text, `"error"`) != (err != nil) {
			t.Errorf("%s is logged as %s, want DEBUG and nothing that the event has not", name, text)
		}
	}
}

// silent is an Observer that drops all events.
type silent struct{}

func (silent) Observe(context.Context, event.Event) {}

// TestAlarmsAreLoggedWithoutAnObserver: a program without an Observer still says that an
// operator must act, and nothing else.
func TestAlarmsAreLoggedWithoutAnObserver(t *testing.T) { //nolint:paralleltest // slog.Default belongs to the process
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	op := semel.Define("charge", semel.OperationOptions[string]{Policy: semel.Hold()})
	for name, test := range map[string]struct {
		observer event.Observer
		lines    int
	}{
		"none":   {nil, 1},
		"silent": {silent{}, 0},
	} {
		var out log
		slog.SetDefault(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
		e := check.Must(semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure, Observer: test.observer}))(t)
		run := func(key string, err error) error {
			_, _, err = semel.Do(t.Context(), e, op.Call(me, key, "in"), func(context.Context) (string, error) { return "v", err })
			return err
		}
		check.NoError(t, run("succeeds", nil), "%s", name)
		check.ErrorIs(t, run("in doubt", errBoom), semel.ErrOutcomeUnknown, "%s", name)
		check.NoError(t, e.Close(t.Context()), "%s", name)
		text := out.text.String()
		check.Equal(t, strings.Count(text, "\n"), test.lines, "%s: lines of the log: %s", name, text)
		check.Equal(t, strings.Contains(text, "level=ERROR msg=semel event=in_doubt operation=charge"), test.lines > 0, "%s: an error in the log: %s", name, text)
	}
}
