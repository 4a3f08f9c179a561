//go:build unix

package tasks_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// child is what one process of a test is told.
type child struct {
	Role       string // the name of what it does
	Name       string // by which the tables know it
	Place      place
	Operations []string // the names of those that it knows
	Slots      int      // how many tasks a worker runs at a time; zero: as many as it wants
}

// orders are the lines a process is told to do while it runs.
type orders <-chan string

type ordersKey struct{}

// beChild does what a process was started for, until it is told to stop, and
// returns its exit code. A process whose test has gone ends at once.
func beChild(text string) int {
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
	go func() { done <- visit(context.WithValue(ctx, ordersKey{}, orders(lines)), c) }()
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

// say tells the test something, in one line.
func say(words ...string) { fmt.Println(strings.Join(words, " ")) }

// ordersOf are the orders of the process that runs.
func ordersOf(ctx context.Context) orders {
	lines, _ := ctx.Value(ordersKey{}).(orders)
	return lines
}

// role does what a process of that role does, until ctx ends.
func role[Tx any](ctx context.Context, c child, s *site[Tx], m *marks) error {
	switch c.Role {
	case "worker":
		return beWorker(ctx, c, s, m)
	case "ticker":
		return beTicker(ctx, c, s, m)
	case "sweeper":
		return beSweeper(ctx, c, s, m)
	case "hurried":
		return beHurried(ctx, c, s, m)
	default:
		return fmt.Errorf("there is no role %q", c.Role)
	}
}
