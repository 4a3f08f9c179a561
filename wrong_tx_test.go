package semel_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store/memory"
)

// A program that uses a transaction of one store with an engine over another,
// and the same program with the right one, to show that nothing else is wrong.
const txProgram = `package main

import (
	"context"
	"database/sql"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

var _ *sql.Tx

func main() {
	engine, _ := semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure})
	op := semel.Define("op", semel.OperationOptions[int]{})
	_, _, _ = semel.DoTx(context.Background(), engine, op.Call(semel.Shared(), "k", 1),
		func(ctx context.Context, tx TX) (int, error) { return 1, nil })
}
`

// TestTransactionOfAnotherStoreDoesNotCompile: the mistake is found before the
// program runs, and the message names both types.
func TestTransactionOfAnotherStoreDoesNotCompile(t *testing.T) {
	t.Parallel()
	if out, err := compile(t, "*memory.Tx"); err != nil {
		t.Fatalf("the right program does not compile: %v\n%s", err, out)
	}
	out, err := compile(t, "*sql.Tx")
	if err == nil {
		t.Fatal("a handler with a *sql.Tx compiles with an engine over the memory store")
	}
	if !strings.Contains(out, "*sql.Tx") || !strings.Contains(out, "*memory.Tx") {
		t.Errorf("the compiler does not name both types:\n%s", out)
	}
}

// compile builds the program as a package of this module that is on no disk.
func compile(t *testing.T, tx string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	source, file := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json")
	check.Require(t, os.WriteFile(source, []byte(strings.Replace(txProgram, "TX", tx, 1)), 0o600))
	program := filepath.Join(check.Must(os.Getwd())(t), "internal", "wrongtx", "main.go")
	overlay := check.Must(json.Marshal(map[string]map[string]string{"Replace": {program: source}}))(t)
	check.Require(t, os.WriteFile(file, overlay, 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", file, "-o", os.DevNull, "./internal/wrongtx").CombinedOutput()
	return string(out), err
}

// txMode is one way to commit effect and outcome together.
type txMode struct {
	name   string
	leased bool
	o      semel.OperationOptions[string]
	ask    func(ctx context.Context, p *process, c semel.Call, fn txHandler) answer
}

func txModes() []txMode {
	return []txMode{
		{name: "inline", ask: doTx},
		{name: "leased", leased: true, o: semel.OperationOptions[string]{Policy: semel.Atomic(), Lease: 30 * time.Second}, ask: doTx},
		{name: "InTx", leased: true, o: semel.OperationOptions[string]{Policy: semel.Atomic()}, ask: doInTx},
	}
}

// doInTx runs fn as the only transaction of a Do.
func doInTx(ctx context.Context, p *process, c semel.Call, fn txHandler) answer {
	return do(ctx, p, c, func(ctx context.Context) (string, error) {
		return semel.InTx(ctx, p.Engine, func(ctx context.Context, tx *memory.Tx) (string, error) { return fn(ctx, tx) })
	})
}

// eachTxMode runs test in a bubble for each mode.
func eachTxMode(t *testing.T, test func(t *testing.T, s txMode)) {
	t.Helper()
	rows := map[string]txMode{}
	for _, s := range txModes() {
		rows[s.name] = s
	}
	eachInBubble(t, rows, test)
}

// eachLeasedMode is eachTxMode without the mode inline.
func eachLeasedMode(t *testing.T, test func(t *testing.T, s txMode)) {
	t.Helper()
	rows := map[string]txMode{}
	for _, s := range txModes()[1:] {
		rows[s.name] = s
	}
	eachInBubble(t, rows, test)
}
