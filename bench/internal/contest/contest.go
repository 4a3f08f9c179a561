// Package contest measures several ways of doing the same work, side by side:
// in rounds, in each of which every side has a slot of the same length, in random
// order. What is compared is compared within a round, and the median of the
// rounds counts, so that what the machine does meanwhile meets all sides.
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
	// Do does it once. It is called by all callers at the same time, by each
	// again when it was answered.
	Do func(ctx context.Context, c *Caller) error
	// Server is what works for this side besides this process; nil: what works
	// for the contest.
	Server usage.Server
}

// Contest is what is run side by side.
type Contest struct {
	// Name is shown to those who watch.
	Name    string
	Callers int
	Sides   []Side
	// Server is what works for the sides besides this process; nil: nothing.
	Server usage.Server
	// Before is called before each slot, to give all sides the same start; nil:
	// nothing is to be done. It is not measured.
	Before func(ctx context.Context, side string) error
	// Rounds is how many there are, and Slot how long a turn is measured; zero:
	// the lab's.
	Rounds int
	Slot   time.Duration
}

// Outcome is what the rounds of a contest have shown.
type Outcome struct {
	Callers int
	Rounds  []map[string]Sample // by the sides' names
}

// Run runs the contest. A slot in which others used the machine is run again, as
// long as the lab has time for that.
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

// turn is a side's slot in a round, run again until it is quiet. If it never is,
// the quietest counts.
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

// line shows a round: operations a second of each side, and what others used.
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
