package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// call is one call of a function for the keys of one shard.
type call struct {
	shard int
	name  string
	reads bool // it writes nothing
	args  []any
	out   []any // the result
	err   error
}

// A call that another node must answer is repeated that often, and after that time.
const (
	moves     = 10
	movePause = 50 * time.Millisecond
)

// run makes the calls, those for one node in one round trip. With confirm, the replicas have
// all changes that the results show. After an error any of the calls may have been executed.
func (s *Store) run(ctx context.Context, confirm bool, calls ...*call) error {
	if err := s.checkShards(ctx); err != nil {
		return err
	}
	return s.runUnchecked(ctx, confirm, calls...)
}

// runUnchecked is run before the number of shards is known.
func (s *Store) runUnchecked(ctx context.Context, confirm bool, calls ...*call) error {
	confirm = confirm && s.options.Replicas > 0
	for try := 1; ; try++ {
		err := s.runOnce(ctx, confirm, calls)
		if err == nil || !isMoved(err) || try == moves {
			return err
		}
		var left []*call
		for _, c := range calls {
			if c.err != nil {
				left = append(left, c)
			}
		}
		calls = left
		pause := time.NewTimer(movePause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return errors.Join(err, context.Cause(ctx))
		}
	}
}

// runOnce makes the calls, on all nodes at the same time. Its error is one for which isMoved
// is true only if the calls without a result were not executed.
func (s *Store) runOnce(ctx context.Context, confirm bool, calls []*call) error {
	groups := make(map[*redis.Client][]*call, 1)
	for _, c := range calls {
		node, err := s.client.node(ctx, s.key(c.shard))
		if err != nil {
			return err
		}
		groups[node] = append(groups[node], c)
	}
	var nodes sync.WaitGroup
	for node, group := range groups {
		if len(groups) == 1 {
			s.runOn(ctx, node, confirm, group)
			break
		}
		nodes.Go(func() { s.runOn(ctx, node, confirm, group) })
	}
	nodes.Wait()
	err := worst(calls)
	if err != nil {
		s.client.reload(ctx)
	}
	return err
}

// worst returns an error of the calls for which isMoved is false, or any error.
func worst(calls []*call) (err error) {
	for _, c := range calls {
		if c.err != nil && (err == nil || isMoved(err)) {
			err = c.err
		}
	}
	return err
}

// runOn makes the calls on one node. It loads the functions if the node does not have them.
func (s *Store) runOn(ctx context.Context, node *redis.Client, confirm bool, calls []*call) {
	s.send(ctx, node, confirm, calls)
	if !isMissing(calls[0].err) {
		return
	}
	if err := s.library.load(ctx, node); err != nil {
		calls[0].err = err
		return
	}
	s.send(ctx, node, confirm, calls)
}

// send sends the calls to a node in one round trip. With confirm it waits for the replicas.
// WAIT covers only the writes of its own connection, so a write must follow the calls.
func (s *Store) send(ctx context.Context, node *redis.Client, confirm bool, calls []*call) {
	if len(calls) == 1 && !confirm {
		command := s.command(ctx, calls[0])
		_ = node.Process(ctx, command) // the command has the error
		calls[0].out, calls[0].err = command.Slice()
		return
	}
	pipe := node.Pipeline()
	commands := make([]*redis.Cmd, len(calls))
	for i, c := range calls {
		commands[i] = s.command(ctx, c)
		_ = pipe.Process(ctx, commands[i])
	}
	confirmed := func() error { return nil }
	if confirm {
		confirmed = s.confirm(ctx, pipe, calls[0])
	}
	_, _ = pipe.Exec(ctx) // each command has its error
	err := confirmed()
	for i, c := range calls {
		if c.out, c.err = commands[i].Slice(); c.err == nil {
			c.err = err
		}
	}
}

// confirm adds a write and a WAIT to a pipeline. The function it returns tells, after the
// pipeline was executed, whether the replicas have confirmed.
func (s *Store) confirm(ctx context.Context, pipe redis.Pipeliner, c *call) func() error {
	wrote := pipe.Set(ctx, s.key(c.shard)+":f", 1, 0)
	acks := redis.NewIntCmd(ctx, "WAIT", s.options.Replicas, s.options.ReplicaTimeout.Milliseconds())
	_ = pipe.Process(ctx, acks)
	return func() error {
		if err := wrote.Err(); err != nil {
			return err
		}
		if err := acks.Err(); err != nil {
			return err
		}
		if acks.Val() < int64(s.options.Replicas) {
			return fmt.Errorf("%w: %d of %d", ErrNotConfirmed, acks.Val(), s.options.Replicas)
		}
		return nil
	}
}

// command returns the command of a call.
func (s *Store) command(ctx context.Context, c *call) *redis.Cmd {
	fcall := "FCALL"
	if c.reads {
		fcall = "FCALL_RO"
	}
	return redis.NewCmd(ctx, append([]any{fcall, s.library.name + "_" + c.name, 1, s.key(c.shard)}, c.args...)...)
}
