package guard_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/guard"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/plainstore/servers"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
)

// receiver is the other system of an operation: it has a fence for each key, which it
// compares unless unfenced is set, and no unique keys.
type receiver struct {
	unfenced bool

	mu      sync.Mutex
	fences  map[string]int
	effects map[string][]int // the attempts that had an effect
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := req.FormValue("key")
	fence, _ := strconv.Atoi(req.FormValue("fence"))
	switch {
	case req.URL.Path == "/look":
		_, _ = fmt.Fprint(w, len(r.effects[key]))
	case fence < r.fences[key] && !r.unfenced:
		w.WriteHeader(http.StatusConflict)
	default:
		r.fences[key] = fence
		if req.URL.Path == "/act" {
			r.effects[key] = append(r.effects[key], fence)
		}
	}
}

// plant is the client of a receiver.
type plant struct {
	url  string
	http *http.Client
}

func newPlant(url string) plant { return plant{url, &http.Client{Transport: &http.Transport{}}} }

func (p plant) call(ctx context.Context, path, key string, fence uint32) (string, error) {
	form := url.Values{"key": {key}, "fence": {strconv.Itoa(int(fence))}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path+"?"+form.Encode(), nil)
	if err != nil {
		return "", err
	}
	answer, err := p.http.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if answer.StatusCode == http.StatusConflict {
		return "", semel.NotCommitted(errRefused) // the receiver's own answer
	}
	return string(body), err
}

func (p plant) check(ctx context.Context, key string) (string, bool, error) {
	n, err := p.call(ctx, "/look", key, 0)
	return "found", n != "0", err
}

// open is the call of the operation, with lock, check and execute.
func (p plant) open(e semel.Runner, op *semel.Operation[string], key string, execute func(context.Context, uint32) (string, error)) (string, error) {
	v, _, err := guard.Do(context.Background(), e, op.Call(me, key, ""),
		func(ctx context.Context) (string, bool, error) { return p.check(ctx, key) }, execute)
	return v, err
}

// operation returns an operation with a fencing token, or one with a lock only. A lease of zero is the engine's.
func (p plant) operation(fenced bool, lease time.Duration) *semel.Operation[string] {
	policy := semel.AtLeastOnce()
	if fenced {
		policy = semel.Fenced(func(ctx context.Context, _ semel.Scope, key string, attempt uint32) error {
			_, err := p.call(ctx, "/raise", key, attempt)
			return err
		}, func(ctx context.Context, _ semel.Scope, key string) (any, bool, error) { return p.check(ctx, key) })
	}
	return semel.Define("open_valve", semel.OperationOptions[string]{Policy: policy, Lease: lease})
}

// sharedRecords returns an engine over the records that parent and child share.
func sharedRecords(at servers.Place, lease time.Duration) (e semel.Runner, end func() error) {
	o := semel.Options{Lease: lease, Wait: time.Minute, Survive: store.NoFailure}
	if at.Engine == "sqlite" {
		db := must(sqlite.Open(at.Address))
		return must(semel.New(sqlite.New(db, sqlite.Options{}), o)), db.Close
	}
	s, end, err := at.Open()
	return must(semel.NewRunner(must(s, err), o)), end
}

// shortLease is the lease of a child, which is to expire.
const shortLease = 400 * time.Millisecond

// childRecords returns the engine of a child.
func childRecords() semel.Runner {
	var at servers.Place
	must(0, json.Unmarshal([]byte(os.Args[1]), &at))
	e, _ := sharedRecords(at, shortLease)
	return e
}

// text returns a place as the argument of a child.
func text(at servers.Place) string { return string(must(json.Marshal(at))) }

// runReceiverChild runs an attempt for each line, which has a key and a lease. It waits before it acts, and
// ignores that its lease is lost.
func runReceiverChild() {
	p, fenced, in := newPlant(os.Args[2]), os.Args[3] == "true", bufio.NewScanner(os.Stdin)
	e := childRecords()
	for in.Scan() {
		key, lease, _ := strings.Cut(in.Text(), " ")
		v, err := p.open(e, p.operation(fenced, must(time.ParseDuration(lease))), key, func(ctx context.Context, fence uint32) (string, error) {
			fmt.Println("executing")
			in.Scan()
			_, err := p.call(context.WithoutCancel(ctx), "/act", key, fence)
			return fmt.Sprint("by attempt ", fence), err
		})
		fmt.Println("ended", v, err)
	}
}

// TestPauseBeyondTheLease: the leader is stopped with SIGSTOP before it acts, another
// process takes over, and the leader continues. A receiver that compares the fence
// rejects it: one effect, and both callers receive its answer. A lock without a fence
// has two effects.
func TestPauseBeyondTheLease(t *testing.T) {
	t.Parallel()
	for name, records := range recordsApart() {
		for _, fenced := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", fenced ", fenced), func(t *testing.T) {
				t.Parallel()
				pauseBeyondTheLease(t, records(t), fenced)
			})
		}
	}
}

// recordsApart are the stores of records of which parent and child share one.
func recordsApart() map[string]func(t *testing.T) servers.Place {
	return map[string]func(t *testing.T) servers.Place{
		"sqlite": sqliteRecords,
		"redis":  func(t *testing.T) servers.Place { return servers.Redis(t) },
		"etcd":   func(t *testing.T) servers.Place { return servers.Etcd(t) },
	}
}

func sqliteRecords(t *testing.T) servers.Place {
	t.Helper()
	at := servers.Place{Engine: "sqlite", Address: filepath.Join(t.TempDir(), "records.db")}
	ledger.OpenSQLite(t, at.Address)
	return at
}

func pauseBeyondTheLease(t *testing.T, records servers.Place, fenced bool) {
	t.Helper()
	r := &receiver{unfenced: !fenced, fences: map[string]int{}, effects: map[string][]int{}}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	p := newPlant(server.URL)
	t.Cleanup(p.http.CloseIdleConnections)
	e := sharedRecordsFor(t, records)
	child := realtest.StartProcess(t, realtest.Self(t, "GUARD_CHILD=receiver", text(records), server.URL, fmt.Sprint(fenced)))
	for round := range rounds(6) { // each waits for a lease to expire
		key := begin(t, child, round)
		stopBetweenWrites(t, child, e, key)
		v, err := p.open(e, p.operation(fenced, 0), key, func(ctx context.Context, fence uint32) (string, error) {
			_, err := p.call(ctx, "/act", key, fence)
			return fmt.Sprint("by attempt ", fence), err
		})
		check.Result(v, err)(t, "by attempt 2", "the takeover")
		child.Signal(t, syscall.SIGCONT)
		child.Command(t, "continue")
		if got, want := child.Await(t, "ended"), "ended by attempt 2 <nil>"; got != want {
			t.Errorf("the stopped leader: %q, want %q", got, want)
		}
		r.mu.Lock()
		got, want := fmt.Sprint(r.effects[key]), map[bool]string{true: "[2]", false: "[2 1]"}[fenced]
		r.mu.Unlock()
		check.Equal(t, got, want, "the effects are those of the attempts")
	}
}

// begin makes the child run an attempt until it is about to act, and returns its key. On a busy machine the
// lease may end before, and the attempt with it: another one then has a longer lease.
func begin(t *testing.T, child *realtest.Process, round int) (key string) {
	t.Helper()
	for lease := shortLease; lease < time.Minute; lease *= 2 {
		key = fmt.Sprintf("%d-%v", round, lease)
		child.Command(t, key+" "+lease.String())
		if child.Await(t, "executing", "ended") == "executing" {
			return key
		}
	}
	t.Fatalf("no attempt has come to its act: %s", child)
	return ""
}

func sharedRecordsFor(t *testing.T, at servers.Place) semel.Runner {
	t.Helper()
	e, end := sharedRecords(at, time.Hour) // a slow machine does not use it up
	t.Cleanup(func() {
		_ = e.Close(context.WithoutCancel(t.Context()))
		_ = end()
	})
	return e
}

// stopBetweenWrites stops a process while it does not hold the write lock of its records. A renewal
// of its lease holds the only write lock of SQLite, and a process that is stopped there lets no
// other one write.
func stopBetweenWrites(t *testing.T, child *realtest.Process, e semel.Runner, key string) {
	t.Helper()
	op, n := semel.Define("write", semel.OperationOptions[string]{Policy: semel.AtLeastOnce(), Wait: time.Second}), 0
	write := func() bool {
		n++
		call := op.Call(me, key+" "+strconv.Itoa(n), "")
		_, _, err := semel.Do(t.Context(), e, call, func(context.Context) (int, error) { return 0, nil })
		return err == nil
	}
	for range 20 {
		child.Signal(t, syscall.SIGSTOP)
		if write() {
			return
		}
		child.Signal(t, syscall.SIGCONT)
		realtest.Poll(t, "the process to give up the write lock", write) // on a busy machine it does not run at once
	}
	t.Fatal("no other process can write while this one is stopped")
}
