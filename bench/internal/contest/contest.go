// Package contest compares several ways (sides) of doing the same work. It runs
// rounds; in each round every side has a slot of the same length, in random order.
// Sides are compared within a round, and the median over the rounds counts. A
// change in the machine's speed then affects all sides alike.
package contest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/usage"
)

// Side is one way of doing the work.
type Side struct {
	Name string
	// Do does the work once. All callers call it concurrently, each in a loop.
	Do func(ctx context.Context, c *Caller) error
	// Server reports the processor time of this side's servers. Nil: the contest's
	// Server is used.
	Server usage.Server
}

// Contest is a comparison of sides.
type Contest struct {
	// Name is shown while the contest runs.
	Name    string
	Callers int
	Sides   []Side
	// Server reports the processor time of the servers. Nil: there are none.
	Server usage.Server
	// Before is called before each slot, to give all sides the same start. It is
	// not measured. Nil: nothing is called.
	Before func(ctx context.Context, side string) error
	// Rounds is the number of rounds, and Slot the length of a slot. Zero: the
	// lab's defaults.
	Rounds int
	Slot   time.Duration
}

// Outcome is the result of a contest.
type Outcome struct {
	Callers int
	Rounds  []map[string]Sample // by side
}

// Run runs the contest. If other processes used the machine during a slot, the slot
// is run again, as long as the lab has time for it.
func (c *Contest) Run(ctx context.Context, l *lab.Lab) (*Outcome, error) {
	rounds := cmp.Or(c.Rounds, l.Rounds())
	callers := newCallers(c.Callers)
	o := &Outcome{Callers: c.Callers}
	for n := range rounds {
		round := make(map[string]Sample, len(c.Sides))
		for _, i := range rand.Perm(len(c.Sides)) {
			s, err := c.turn(ctx, l, c.Sides[i], callers)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", c.Name, c.Sides[i].Name, err)
			}
			round[c.Sides[i].Name] = s
		}
		o.Rounds = append(o.Rounds, round)
		l.Logf("%s, round %d of %d: %s", c.Name, n+1, rounds, c.line(round))
	}
	return o, nil
}

// turn runs a side's slot in a round, again until it is quiet. If it never is, the
// quietest run counts.
func (c *Contest) turn(ctx context.Context, l *lab.Lab, side Side, callers []*Caller) (Sample, error) {
	var best Sample
	for try := 1; ; try++ {
		s, err := c.once(ctx, l, side, callers)
		if err != nil {
			return Sample{}, err
		}
		if try == 1 || s.Foreign < best.Foreign {
			best = s
		}
		best.Tries = try
		if best.Quiet() || !l.Again(ctx) {
			return best, nil
		}
	}
}

func (c *Contest) once(ctx context.Context, l *lab.Lab, side Side, callers []*Caller) (Sample, error) {
	if c.Before != nil {
		if err := c.Before(ctx, side.Name); err != nil {
			return Sample{}, err
		}
	}
	server := side.Server
	if server == nil {
		server = c.Server
	}
	if server == nil {
		server = usage.None
	}
	s, err := slot(ctx, side, callers, server, l.Warm(), cmp.Or(c.Slot, l.Slot()))
	if err == nil && s.Ops == 0 {
		err = errors.New("nothing was done in time")
	}
	return s, err
}

// line formats a round: the operations per second of each side, and the load of
// other processes.
func (c *Contest) line(round map[string]Sample) string {
	var b strings.Builder
	foreign := 0.0
	for _, side := range c.Sides {
		s := round[side.Name]
		fmt.Fprintf(&b, "%s %s/s, ", side.Name, thousands(Throughput(s)))
		foreign = max(foreign, s.Foreign)
	}
	fmt.Fprintf(&b, "others %.0f %%", 100*foreign)
	return b.String()
}
