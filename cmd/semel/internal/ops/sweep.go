package ops

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/metricsserver"
	"github.com/semelgo/semel/semelotel"
)

// sweepFlags are the flags of sweep.
type sweepFlags struct {
	metrics    string
	every      time.Duration
	operations []string
	retention  time.Duration
}

func newSweepCommand() *cobra.Command {
	var f sweepFlags
	c := &cobra.Command{
		Use:   "sweep",
		Short: "Purge old records and settle those of dead processes, until it is stopped",
		Long: `sweep runs until it is stopped. At each interval it removes records that are past their
retention, and settles the records of dead processes, whose lease has expired, of the
operations that --operation names with the policy of their definition: hold, atomic,
keyed or at-least-once. Under hold such a record becomes InDoubt; under the other
policies it becomes Pending, and may run again. A wrong policy can therefore repeat an
effect. Operations with the policies heal and fenced need functions of their program,
whose own sweeper settles them. Any number of sweepers may run.

With --metrics it serves the metrics of the database and of the sweeper to Prometheus, at
/metrics of that address. Events are logged on the error output.`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			operations, err := f.declared()
			if err != nil {
				return err
			}
			return withDB(c, func(ctx context.Context, db *database) error { return f.run(ctx, c, db, operations) })
		},
	}
	addDB(c)
	c.Flags().StringVar(&f.metrics, "metrics", "", "serve metrics on this host:port")
	c.Flags().DurationVar(&f.every, "every", 30*time.Second, "the interval")
	c.Flags().StringArrayVar(&f.operations, "operation", nil, "settle records of this operation, as NAME=POLICY; repeat the flag for each operation")
	c.Flags().DurationVar(&f.retention, "retention", 24*time.Hour, "the retention of these operations, which their records keep for the case that no program knows it")
	return c
}

// policies are the policies whose records can be settled without functions of a program.
func policies() map[string]semel.Policy {
	return map[string]semel.Policy{
		"hold": semel.Hold(), "atomic": semel.Atomic(), "keyed": semel.Keyed(), "at-least-once": semel.AtLeastOnce(),
	}
}

// declared returns the operations that the flags name.
func (f *sweepFlags) declared() ([]semel.Declared, error) {
	if f.every <= 0 {
		return nil, exit.Usagef("--every %s is not longer than zero", f.every)
	}
	if _, _, err := net.SplitHostPort(f.metrics); f.metrics != "" && err != nil {
		return nil, exit.Usagef("--metrics %q is not host:port", f.metrics)
	}
	var all []semel.Declared
	var names []string
	for _, text := range f.operations {
		name, policy, _ := strings.Cut(text, "=")
		p, known := policies()[policy]
		switch {
		case !known:
			return nil, exit.Usagef("--operation %q is not NAME=POLICY with the policy hold, atomic, keyed or at-least-once", text)
		case slices.Contains(names, name):
			return nil, exit.Usagef("--operation %s is given twice", name)
		}
		names = append(names, name)
		all = append(all, semel.Define(name, semel.OperationOptions[struct{}]{Policy: p, Retention: f.retention}))
	}
	return all, nil
}

// run sweeps until ctx ends.
func (f *sweepFlags) run(ctx context.Context, c *cobra.Command, db *database, operations []semel.Declared) error {
	log := slog.New(slog.NewTextHandler(c.ErrOrStderr(), nil))
	o := semel.Options{Operations: operations, Observer: event.Slog(log)}
	if f.metrics == "" {
		return f.sweep(ctx, c, db, o)
	}
	server, err := metricsserver.Listen(ctx, f.metrics, semelotel.Options{System: db.system, Observer: o.Observer}, log)
	if err != nil {
		return exit.Usagef("--metrics: %w", err)
	}
	defer server.Close()
	ctx, stop := context.WithCancel(ctx)
	o.Observer, o.Tracer = server.Telemetry, server.Telemetry
	var serving sync.WaitGroup
	defer serving.Wait()
	defer stop()
	serving.Go(func() { _ = server.Run(ctx) })
	fmt.Fprintf(c.OutOrStdout(), "serving %s\n", server.URL())
	return f.sweep(ctx, c, db, o, server.Telemetry)
}

// sweep sweeps until ctx ends, and has the database watched.
func (f *sweepFlags) sweep(ctx context.Context, c *cobra.Command, db *database, o semel.Options, watching ...*semelotel.Telemetry) error {
	engine, err := db.engine(o)
	if err != nil {
		return err
	}
	for _, t := range watching {
		stop, err := t.Watch(engine, semelotel.WatchOptions{})
		if err != nil {
			return err
		}
		defer func() { _ = stop() }() // it only forgets the instruments
	}
	sweeper, err := admin.NewSweeper(engine, admin.SweeperOptions{Every: f.every})
	if err != nil {
		return err
	}
	fmt.Fprintf(c.OutOrStdout(), "sweeping %s every %s\n", db.name, f.every)
	return sweeper.Run(ctx)
}
