//go:build unix

package tasks_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// manyTicks is how many ticks each process is given: a process is killed twice at each point,
// or more often when soaking.
func manyTicks() int64 { return int64(rounds(4 * len(points()))) }

func TestEachTickRunsOnceWhileProcessesAreKilled(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		at, s := inPostgres(t)
		killAtTicks(t, at, groundTruth{s.tables})
	})
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		at, s := inMariaDB(t)
		killAtTicks(t, at, groundTruth{s.tables})
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		at, s := inSQLite(t)
		killAtTicks(t, at, groundTruth{s.tables})
	})
}

// tickers are two processes that are given the same ticks.
type tickers struct {
	t               *testing.T
	databaseAddress databaseAddress
	two             [2]*process
	made            int
	kills           int64
	enqueueAgain    int64 // ticks that a process found enqueued
}

// killAtTicks gives both processes each tick, and kills one of them at every second.
func killAtTicks(t *testing.T, at databaseAddress, w groundTruth) {
	t.Helper()
	c := &tickers{t: t, databaseAddress: at}
	for i := range c.two {
		c.replace(i)
	}
	n := manyTicks()
	first := time.Now().Add(-2 * time.Hour).Truncate(time.Minute)
	for i := range int(n) {
		c.tick(first.Add(time.Duration(i)*time.Minute).Unix(), i)
	}
	w.await(t, n, "ticks that were run", `select count(*) from semel_records where state = 4`)
	for i := range int(n) { // all of them come once more, late
		c.give(0, first.Add(time.Duration(i)*time.Minute).Unix(), nowhere)
		c.awaitReport(0, first.Add(time.Duration(i)*time.Minute).Unix())
	}
	endAll(t, c.two[:])

	w.want(t, n, "records", `select count(*) from semel_records`)
	w.want(t, n, "effects", `select count(*) from effects`)
	w.want(t, n, "ticks that had an effect", `select count(distinct task) from effects`)
	w.wantLegalTransitions(t)
	t.Logf("%d kills, %d ticks found enqueued, %d requeues", c.kills, c.enqueueAgain, w.count(t, requeues))
	if c.kills < n/2 {
		t.Errorf("%d kills, want one at every second tick of %d", c.kills, n)
	}
	if c.enqueueAgain <= n {
		t.Errorf("vacuous: no tick was found enqueued by the other process")
	}
}

// tick gives both processes the i-th tick.
func (c *tickers) tick(unix int64, i int) {
	if i%2 == 0 {
		c.give(0, unix, nowhere)
		c.give(1, unix, nowhere)
		c.awaitReport(0, unix)
		c.awaitReport(1, unix)
		return
	}
	victim := rand.IntN(2)
	at := points()[i/2%len(points())]
	c.give(victim, unix, at)
	c.give(1-victim, unix, nowhere)
	c.awaitReport(1-victim, unix)
	c.two[victim].AwaitKilled(c.t)
	c.kills++
	c.replace(victim)
	if i%4 == 1 { // the one in its place is given it too
		c.give(victim, unix, nowhere)
		c.awaitReport(victim, unix)
	}
}

// replace starts a process in place of the i-th.
func (c *tickers) replace(i int) {
	c.made++
	c.two[i] = start(c.t, child{
		Role: "ticker", Name: fmt.Sprint("clock-", c.made), Place: c.databaseAddress, Operations: []string{ticked.Name()},
	})
}

// give gives the i-th process a tick, and says where it is to die.
func (c *tickers) give(i int, unix int64, at point) {
	c.two[i].Command(c.t, fmt.Sprintf("tick %d %s", unix, at))
}

// awaitReport waits until the i-th process has enqueued a tick, or found it enqueued.
func (c *tickers) awaitReport(i int, unix int64) {
	c.t.Helper()
	if c.two[i].Await(c.t, said(unix, true), said(unix, false)) == said(unix, false) {
		c.enqueueAgain++
	}
}
