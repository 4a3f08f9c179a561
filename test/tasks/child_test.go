//go:build unix

package tasks_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/semelgo/semel/internal/plainstore/servers"
)

// child is the configuration of one process of a test.
type child struct {
	Role       string // its role
	Name       string // its name in the tables
	Place      databaseAddress
	Records    servers.Place // of a store without transactions; empty: those of Place
	Operations []string      // the operations that it knows
	Slots      int           // how many tasks a worker runs concurrently; zero: the default
}

// commands are the lines that the test sends to a running process.
type commands <-chan string

type commandsKey struct{}

// runChild runs a process's role until it is told to stop, and returns its exit
// code. A process whose test has ended ends at once.
func runChild(text string) int {
	var c child
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	lines, gone := make(chan string, 100), make(chan struct{})
	go func() {
		defer close(gone)
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			if in.Text() == "stop" {
				stop()
				continue
			}
			lines <- in.Text()
		}
	}()
	done := make(chan error)
	go func() { done <- openDatabase(context.WithValue(ctx, commandsKey{}, commands(lines)), c) }()
	select {
	case err := <-done:
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	case <-gone:
		return 3
	}
}

// report sends one line to the test.
func report(words ...string) { fmt.Println(strings.Join(words, " ")) }

// commandsOf are the commands to this process.
func commandsOf(ctx context.Context) commands {
	lines, _ := ctx.Value(commandsKey{}).(commands)
	return lines
}

// role runs the role until ctx ends.
func role[Tx any](ctx context.Context, c child, s *database[Tx], m *counters) error {
	switch c.Role {
	case "worker":
		return runWorker(ctx, c, s, m)
	case "ticker":
		return runTicker(ctx, c, s, m)
	case "sweeper":
		return runSweeper(ctx, c, s, m)
	case "hurried":
		return beShortLeaseLeader(ctx, c, s, m)
	default:
		return fmt.Errorf("there is no role %q", c.Role)
	}
}
