// Command trace lists the functions of this module that one warm request behind
// semelhttp.Atomic enters, over SQLite or memory. `make trace` builds it with coverage
// and runs it.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/coverage"
	"strings"

	"github.com/semelgo/semel"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/sqlite"
)

func main() {
	over := flag.String("store", "memory", "memory or sqlite")
	replay := flag.Bool("replay", false, "trace a replay and not a first run")
	list := flag.Bool("list", false, "list the functions")
	flag.Parse()
	dir, err := os.MkdirTemp("", "trace")
	if err == nil {
		err = trace(context.Background(), dir, *over, *replay)
	}
	if err == nil {
		err = errors.Join(report(context.Background(), os.Stdout, dir, *list), os.RemoveAll(dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "trace:", err)
		os.Exit(1)
	}
}

// trace writes into dir which code one request enters.
func trace(ctx context.Context, dir, over string, replay bool) error {
	protected, err := handler(ctx, dir, over)
	if err != nil {
		return err
	}
	for i := range 4 {
		send(ctx, protected, fmt.Sprintf("warm-%d", i))
	}
	key := "traced"
	if replay {
		key = "warm-0"
	}
	if err := coverage.ClearCounters(); err != nil {
		return err
	}
	response := send(ctx, protected, key)
	if response.Code != http.StatusCreated || (response.Header().Get(semelhttp.HeaderReplayed) != "") != replay {
		return fmt.Errorf("response %d %v", response.Code, response.Header())
	}
	return errors.Join(coverage.WriteCountersDir(dir), coverage.WriteMetaDir(dir))
}

func send(ctx context.Context, h http.Handler, key string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/orders", strings.NewReader(`{"amount":500}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(semelhttp.HeaderKey, key)
	h.ServeHTTP(w, r)
	return w
}

func handler(ctx context.Context, dir, over string) (http.Handler, error) {
	if over == "memory" {
		return protect(memory.New(memory.Options{}))
	}
	db, err := sqlite.Open(filepath.Join(dir, "trace.db")) //nolint:contextcheck // Open takes none
	if err != nil {
		return nil, err
	}
	if err := sqlitemigrate.Up(ctx, db, sqlitemigrate.Options{}); err != nil {
		return nil, err
	}
	return protect(sqlite.New(db, sqlite.Options{}))
}

func protect[Tx any](s store.TxStore[Tx]) (http.Handler, error) {
	engine, err := semel.New(s, semel.Options{Survive: store.NoFailure})
	if err != nil {
		return nil, err
	}
	op := semel.Define("order", semel.OperationOptions[semelhttp.Request]{})
	once, err := semelhttp.Atomic(engine, op, semelhttp.Options{
		ScopeFunc: func(*http.Request) (semel.Scope, error) { return semel.ScopeOf("ann"), nil },
	})
	if err != nil {
		return nil, err
	}
	return once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := semel.TxOf(r.Context(), engine); !ok {
			http.Error(w, "no transaction", http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"id":1}`))
	})), nil
}

// report prints how many functions and files were entered, by package.
func report(ctx context.Context, to io.Writer, dir string, list bool) error {
	cmd := exec.CommandContext(ctx, "go", "tool", "covdata", "func", "-i="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go tool covdata: %w", err)
	}
	files, functions, byPackage := map[string]bool{}, 0, map[string]int{}
	for line := range bytes.Lines(out) {
		fields := strings.Fields(string(line))
		if len(fields) != 3 || fields[2] == "0.0%" || fields[0] == "total" {
			continue
		}
		file, _, _ := strings.Cut(strings.TrimPrefix(fields[0], "github.com/semelgo/semel/"), ":")
		if strings.HasPrefix(file, "test/") {
			continue
		}
		files[file] = true
		functions++
		byPackage[filepath.Dir(file)]++
		if list {
			fmt.Fprintln(to, file, fields[1])
		}
	}
	_, err = fmt.Fprintf(to, "%d functions in %d files %v\n", functions, len(files), byPackage)
	return err
}
