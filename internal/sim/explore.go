package sim

import (
	"fmt"
	"slices"
	"strings"
)

// maxSteps is far more than any run takes: an actor that goes on for ever is a
// finding.
const maxSteps = 400

// Options says how to explore. The zero value watches everything.
type Options struct {
	// Watch names the invariants that count. None: all.
	Watch []string
	// Progress, if set, is called from time to time.
	Progress func(Report)
}

// Report is what an exploration has found so far.
type Report struct {
	Plan      string
	Runs      int // until their end, or until a state that was seen before
	States    int // distinct
	Steps     int
	Marks     Marks
	Violation *Violation // nil: none
}

// Explore runs every run of a plan, until one breaks an invariant.
func Explore(p Plan, o Options) (Report, error) {
	s, err := newStage(p, o.Watch)
	if err != nil {
		return Report{}, err
	}
	return s.explore(o.Progress), nil
}

func (s *stage) explore(progress func(Report)) Report {
	defer s.close()
	report := Report{Plan: s.plan.Name}
	seen := make(map[digest]struct{})
	var c chooser
	for more := true; more; more = c.next() {
		w := newWorld(s, &c, &report.Marks)
		report.Steps += w.run(seen)
		report.Runs++
		report.States = len(seen)
		if w.found != nil {
			report.Violation = shorten(s, w.found, slices.Clone(c.script[:c.pos]))
			return report
		}
		if progress != nil && report.Runs%10000 == 0 {
			progress(report)
		}
	}
	return report
}

// run runs until all actors have ended, or until it reaches a state in seen. If
// seen is nil, it runs to the end.
func (w *world) run(seen map[digest]struct{}) int {
	defer w.cleanUp()
	for i, a := range w.actors {
		a.start(w.stage.coroutine(i))
	}
	var ways []event
	for step := 1; ; step++ {
		ways = w.possibleEvents(ways)
		switch {
		case len(ways) == 0:
			w.fail("deadlock", "no actor can continue")
			return step
		case step > maxSteps:
			w.fail("livelock", "still running after %d steps", maxSteps)
			return step
		case len(ways) > 1 && seen != nil && w.choose.fresh():
			d := w.digest()
			if _, ok := seen[d]; ok {
				return step
			}
			seen[d] = struct{}{}
		}
		event := ways[w.choose.choose(len(ways))]
		w.take(event)
		w.check()
		if w.choose.astray {
			w.fail("script", "the script does not fit: there are %d ways to go on", len(ways))
		}
		if w.found != nil || event.kind == eventSettle {
			return step
		}
	}
}

// cleanUp ends the remaining actors, and disconnects engine timers that may be
// left.
func (w *world) cleanUp() {
	for _, a := range w.actors {
		if a.status == statusReady && a.co != nil {
			a.proc.crash()
		}
	}
	for _, p := range w.processes {
		p.store.owner.Store(nil)
	}
}

// Replay repeats a run by the line that a Violation gave, and tells it step by
// step. The violation is nil when the run breaks nothing.
func Replay(line string, plans []Plan) (lines []string, v *Violation, err error) {
	name, text, _ := strings.Cut(line, ":")
	i := slices.IndexFunc(plans, func(p Plan) bool { return p.Name == name })
	if i < 0 {
		return nil, nil, fmt.Errorf("there is no plan %q", name)
	}
	script, err := parseScript(text)
	if err != nil {
		return nil, nil, err
	}
	s, err := newStage(plans[i], nil)
	if err != nil {
		return nil, nil, err
	}
	defer s.close()
	w := again(s, script)
	return w.trace.lines, w.found, nil
}

// again runs one script and records its trace.
func again(s *stage, script []uint8) *world {
	w := newWorld(s, &chooser{script: script}, new(Marks))
	w.trace = new(trace)
	w.run(nil)
	return w
}

// shorten removes unnecessary choices from a script that breaks an invariant,
// and records the trace of the rest.
func shorten(s *stage, v *Violation, script []uint8) *Violation {
	for i := 0; i < len(script); i++ {
		if script[i] == 0 {
			continue
		}
		try := slices.Clone(script)
		try[i] = 0
		if w := again(s, try); w.found != nil && w.found.Invariant == v.Invariant {
			script, i = try, -1
		}
	}
	w := again(s, script)
	if w.found == nil {
		v.Text += "; running it again breaks nothing: something but the scheduler decides"
		return v
	}
	w.found.Replay = s.plan.Name + ":" + w.choose.String()
	w.found.Trace = w.trace.lines
	return w.found
}
