package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/store"
)

// do runs the command. A server may be running at the same time.
func (c *command) do(ctx context.Context, s *app, actor string, stdout io.Writer) error {
	var now store.Record
	var err error
	switch c.verb {
	case verbDoubts:
		return listDoubts(ctx, s, stdout)
	case verbFailed:
		return listFailed(ctx, s, stdout)
	case verbResolve:
		for _, e := range enginesOf(s) {
			now, err = admin.Resolve(ctx, e, admin.Resolution{ID: c.id, To: c.to, Actor: actor, Reason: c.reason})
			if !errors.Is(err, admin.ErrNotInDoubt) {
				break
			}
		}
	case verbRedrive:
		now, err = admin.Redrive(ctx, s.queue, admin.RedriveRequest{ID: c.id, Actor: actor, Reason: c.reason})
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", c.verb, c.id, err)
	}
	_, _ = fmt.Fprintf(stdout, "%s is %s now\n", now.ID, now.State)
	return nil
}

// enginesOf returns the engines of all databases that hold records: one or two.
func enginesOf(s *app) []semel.Runner {
	if s.records == s.domain {
		return []semel.Runner{s.engine.Core}
	}
	return []semel.Runner{s.engine.Core, s.queue.Core}
}

// listDoubts prints the records in doubt, one per line. It does not print keys,
// because they belong to the users.
func listDoubts(ctx context.Context, s *app, stdout io.Writer) error {
	for _, e := range enginesOf(s) {
		err := list(ctx, e, store.Query{State: store.InDoubt}, func(r store.Record) {
			_, user, _ := strings.Cut(r.Scope, ":") // the form that scopeOf makes
			_, _ = fmt.Fprintf(stdout, "%s  %s of user %s, attempt %d, in doubt for %v\n",
				r.ID, r.Operation, user, r.Attempt, r.Since.Round(time.Second))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// listFailed prints the failed tasks and imports, one per line.
func listFailed(ctx context.Context, s *app, stdout io.Writer) error {
	for _, operation := range queued() {
		err := list(ctx, s.queue.Core, store.Query{State: store.Failed, Operation: operation}, func(r store.Record) {
			_, _ = fmt.Fprintf(stdout, "%s  %s, attempt %d, failed %v ago\n",
				r.ID, r.Operation, r.Attempt, r.Since.Round(time.Second))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// list calls show for each record of a query, and reads a page at a time.
func list(ctx context.Context, e semel.Runner, query store.Query, show func(store.Record)) error {
	query.Limit = store.MaxLimit
	for {
		page, err := admin.List(ctx, e, query)
		if err != nil {
			return err
		}
		for _, r := range page {
			show(r)
			query.After = r.ID
		}
		if len(page) < query.PageSize() {
			return nil
		}
	}
}
