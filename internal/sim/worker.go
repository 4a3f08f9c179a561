package sim

import (
	"context"
	"errors"
	"slices"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
)

// enqueuer enqueues its call.
func enqueuer(ctx context.Context, a *actor) {
	added, err := semel.Enqueue(ctx, a.engine, a.w.stage.call(a.ask), semel.EnqueueOptions{})
	if err != nil {
		a.receiveResponse(toResponse("", false, err))
		return
	}
	a.receiveResponse(response{kind: responseQueued, epoch: a.w.rows[a.ask.row].epoch})
	if added {
		a.w.mark(MarkQueued)
	} else {
		a.w.mark(MarkQueuedAlready)
	}
}

// worker takes pending records and runs them, as often as the plan says.
func worker(ctx context.Context, a *actor) {
	p := &a.w.stage.plan
	for range p.Rounds {
		var jobs []*job
		for range p.Dequeues {
			taken, _ := adapter.Dequeue(ctx, a.engine, a.w.stage.op, p.Claims)
			for _, attempt := range taken {
				jobs = append(jobs, a.job(attempt))
			}
		}
		a.work(ctx, jobs)
	}
}

// job is an attempt that a worker has taken.
type job struct {
	adapter.Completion

	ask   request
	nth   int // of the worker's
	epoch int
	done  bool // Prepare ended the attempt
}

func (a *actor) job(attempt *semel.Attempt) *job {
	a.callCount++
	row := a.w.indexOf(attempt.Call().ID())
	j := &job{ask: request{row: row}, nth: a.callCount, epoch: a.w.rows[row].epoch}
	j.Attempt = attempt
	return j
}

// work runs attempts and ends them: successes in one request, the rest alone.
func (a *actor) work(ctx context.Context, jobs []*job) {
	first := a.beatsFirst(jobs)
	if first {
		a.beat(ctx, jobs)
	}
	for _, j := range jobs {
		a.run(j) //nolint:contextcheck // it runs in the attempt's, which comes from ctx
	}
	if !first {
		a.beat(ctx, jobs)
	}
	a.finish(ctx, jobs)
}

// finish records the ends of attempts: in one request where possible, the rest
// alone.
func (a *actor) finish(ctx context.Context, jobs []*job) {
	var ends []*adapter.Completion
	for _, j := range jobs {
		if !j.done {
			ends = append(ends, &j.Completion)
		}
	}
	pause := adapter.CompleteMany(ctx, a.engine, ends)
	if len(ends)-len(pause) > 1 {
		a.w.mark(MarkCompletedTogether)
	}
	for _, j := range jobs {
		if slices.Contains(pause, &j.Completion) {
			j.Outcome, j.EndErr = j.Attempt.End(j.Value, j.Err)
		}
		a.learn(j)
	}
}

// beatsFirst says when the worker renews its leases: before it runs what it took,
// or after.
func (a *actor) beatsFirst(jobs []*job) bool {
	if !a.w.stage.plan.Renewing || a.free || a.status == statusDead || len(jobs) == 0 {
		return true
	}
	event := a.w.choose.choose(2)
	a.note(uint64(event))
	return event == 0
}

// beat renews the leases of attempts.
func (a *actor) beat(ctx context.Context, jobs []*job) {
	if !a.w.stage.plan.Renewing || a.free || len(jobs) == 0 {
		return
	}
	attempts := make([]*semel.Attempt, len(jobs))
	for i, j := range jobs {
		attempts[i] = j.Attempt
	}
	adapter.RenewLeases(ctx, a.engine, attempts)
	for _, attempt := range attempts {
		if errors.Is(context.Cause(attempt.Context()), semel.ErrLeaseLost) { //nolint:contextcheck // it comes from ctx
			a.w.mark(MarkLeaseLost)
		}
	}
}

// run runs the function of an attempt, if it is to be run.
func (a *actor) run(j *job) {
	if out, err := j.Attempt.Prepare(); out != nil || err != nil {
		j.Outcome, j.EndErr, j.done = out, err, true
		return
	}
	in, err := a.w.stage.op.Input(j.Attempt)
	if err != nil {
		a.unreadable(j, err)
		return
	}
	j.ask.fp = in
	a.ask = j.ask
	ctx := j.Attempt.Context()
	if ctx.Err() != nil {
		j.Err = a.idle(j, context.Cause(ctx))
		return
	}
	was := a.callCount
	a.callCount = j.nth
	j.Value, j.Err = a.function(ctx)
	a.callCount = was
}

// unreadable ends an attempt without an input: a direct call made the record.
// An enqueued record has an input.
func (a *actor) unreadable(j *job, err error) {
	if a.status != statusDead && a.w.enqueued(j.ask.row) {
		a.w.fail("I13", "%s cannot run what was enqueued: %v", a.name, err)
	}
	j.ask.fp, j.Err = a.w.rows[j.ask.row].request, a.idle(j, err)
}

// idle is the error of a function that has done nothing. The error proves that,
// unless only the receiver's answer counts.
func (a *actor) idle(j *job, err error) error {
	a.w.noteError(grant{row: j.ask.row, attempt: j.Attempt.Number(), owner: j.Attempt.Token().Owner})
	if a.w.stage.mode.receiverKind == keyed {
		return err
	}
	return semel.NotCommitted(err)
}

// function is what the operation does.
func (a *actor) function(ctx context.Context) (string, error) {
	if a.w.stage.mode.shape == shapeInTx {
		return semel.InTx(ctx, a.engine, a.insert)
	}
	return a.act(ctx)
}

// learn receives the response of an attempt.
func (a *actor) learn(j *job) {
	if a.status == statusDead {
		return
	}
	var value string
	err := j.EndErr
	if j.Outcome != nil {
		err = errors.Join(err, j.Outcome.Decode(&value))
	}
	t := toResponse(value, j.Outcome != nil && j.Outcome.Replayed, err)
	t.ask, t.of, t.attempt, t.epoch = j.nth, j.ask, j.Attempt.Number(), j.epoch
	a.responses = append(a.responses, t)
	a.w.logf("%s receives %v of attempt %d", a.name, t, t.attempt)
}
