package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// event is one line of go test -json.
type event struct {
	Action     string
	Package    string
	ImportPath string // of a build-output
	Test       string
	Output     string
	Elapsed    float64 // seconds
	Key, Value string  // of an attr
}

// progressEvery is how long nothing may be said while tests run.
const progressEvery = 15 * time.Second

// pass runs go test once over the packages of the module in dir.
func (o options) pass(ctx context.Context, p *printer, dir string, packages []string, run string, race bool) error {
	args := []string{"test", "-C", dir, "-json", "-shuffle=on", "-count=1", "-timeout=" + o.timeout.String()}
	if race {
		args = append(args, "-race")
	}
	if run != "" {
		args = append(args, "-run="+run)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, packages...)...)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("connect go test: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start go test: %w", err)
	}
	p.follow(readEvents(stdout))
	return p.ended(cmd.Wait())
}

// passHeavy runs what one package keeps for a build without the race detector.
func (o options) passHeavy(ctx context.Context, p *printer, h heavy) error {
	run := h.pattern()
	if o.run != "" {
		run = o.run
	}
	fmt.Fprintf(p.out, "%s again, without the race detector\n", p.short(h.path))
	return o.pass(ctx, p, ".", []string{h.path}, run, false)
}

// readEvents decodes lines until r ends. A line that is not an event is passed
// on as output of no test.
func readEvents(r io.Reader) <-chan event {
	events := make(chan event)
	go func() {
		defer close(events)
		in := bufio.NewReader(r)
		for {
			line, err := in.ReadBytes('\n')
			if len(line) > 0 {
				var e event
				if json.Unmarshal(line, &e) != nil {
					e = event{Action: "build-output", Output: string(line)}
				}
				events <- e
			}
			if err != nil {
				return
			}
		}
	}()
	return events
}

// follow feeds the events to the tally and prints as packages end.
func (p *printer) follow(events <-chan event) {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return
			}
			if p.event(e) {
				tick.Reset(progressEvery)
			}
		case <-tick.C:
			p.progress()
		}
	}
}

// ended judges how go test ended. A non-zero exit that no test explains is an
// error: otherwise a run that never started would count as passed.
func (p *printer) ended(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && p.tally.count(statusFail) > 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("run go test: %w", err)
	}
	return nil
}
