//go:build unix

package messages_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/semelwatermill"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// The ways to handle a message.
const (
	plain  = "plain"     // with a function of package inbox
	router = "watermill" // with a Watermill router
	naive  = "sketch"    // by inserting its ID first and handling it afterwards
)

// The points at which a consumer may kill itself.
const (
	before  = "before"  // it has the message, and has done nothing
	between = "between" // the mark of the message is written, its effect is not
	acted   = "acted"   // the effect is begun
	after   = "after"   // all but the acknowledgement
)

// consumer is a process that handles messages.
type consumer struct {
	Postgres, AMQP, Queue string
	Way                   string
	Mode                  inbox.Mode
	Keyed                 bool // in the mode Leased; else Hold
	Kill                  bool // kills itself at the point that the message's ID ends with, the first time
	Failing               float64

	pool   *pgxpool.Pool
	engine *semel.Engine[pgx.Tx]
	orders *inbox.Inbox[semel.Raw]
	point  atomic.Value // the point at which the current message kills the process
}

// run consumes until its parent closes its input.
func (c *consumer) run() error {
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	if err := c.open(); err != nil {
		return err
	}
	defer c.pool.Close()
	report("consuming")
	if c.Way == router {
		return c.route(ctx)
	}
	consume(ctx, c.AMQP, c.Queue, c.prefetch(), c.handle)
	return nil
}

func (c *consumer) open() (err error) {
	if c.pool, err = pgxpool.New(context.Background(), c.Postgres); err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	records, err := postgres.New(c.pool, postgres.Options{})
	if err != nil {
		return fmt.Errorf("open the store: %w", err)
	}
	o := inbox.Options[semel.Raw]{
		Group: "shipping", Mode: c.Mode, Wait: 50 * time.Millisecond,
		Retry: semel.Retry{MaxCrashes: 100, Delay: func(int) time.Duration { return 50 * time.Millisecond }},
	}
	if c.Mode == inbox.Leased {
		o.Lease = time.Minute // no living consumer loses it; the test ends that of a dead one
		if c.Keyed {
			o.Policy = semel.Keyed()
		}
	}
	if c.orders, err = inbox.New("ship_order", o); err != nil {
		return fmt.Errorf("open the inbox: %w", err)
	}
	c.engine, err = semel.New(records, semel.Options{Survive: store.NoFailure, Operations: []semel.Declared{c.orders.Operation()}})
	if err != nil {
		return fmt.Errorf("open the engine: %w", err)
	}
	return nil
}

// handle handles one delivery without a router.
func (c *consumer) handle(ctx context.Context, d amqp.Delivery) {
	c.begin(d.MessageId, d.Redelivered)
	c.killAt(before)
	r := c.once(ctx, d)
	c.killAt(after)
	reportResult(r.Decision, r.Duplicate, d.Redelivered)
	// An error belongs to the connection: the broker then delivers the message
	// again.
	switch r.Decision {
	case inbox.Ack:
		_ = d.Ack(false)
	case inbox.Reject:
		_ = d.Nack(false, false)
	case inbox.Redeliver:
		pause(ctx, r.After)
		_ = d.Nack(false, true)
	}
}

func (c *consumer) once(ctx context.Context, d amqp.Delivery) inbox.Result {
	m := inbox.Message[semel.Raw]{Producer: d.AppId, ID: d.MessageId, Payload: d.Body}
	switch {
	case c.Way == naive:
		return c.naive(ctx, d)
	case c.orders.Transactional():
		return inbox.HandleTx(ctx, c.orders, c.engine, m, func(ctx context.Context, tx pgx.Tx, _ semel.Raw) error {
			return c.ship(ctx, tx, d.MessageId)
		})
	default:
		return inbox.Handle(ctx, c.orders, c.engine, m, func(ctx context.Context, _ semel.Raw) error {
			return c.charge(ctx, d.MessageId)
		})
	}
}

// route handles deliveries with a Watermill router.
func (c *consumer) route(ctx context.Context) error {
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	if err != nil {
		return fmt.Errorf("open the router: %w", err)
	}
	o := semelwatermill.Options{Name: semelwatermill.FromMetadata("producer", "id")}
	var once message.HandlerMiddleware
	if c.orders.Transactional() {
		once, err = semelwatermill.MiddlewareTx(c.orders, c.engine, o)
	} else {
		once, err = semelwatermill.Middleware(c.orders, c.engine, o)
	}
	if err != nil {
		return fmt.Errorf("open the middleware: %w", err)
	}
	router.AddMiddleware(c.watch, once)
	router.AddConsumerHandler("ship", c.Queue, subscriber{c.AMQP, c.prefetch()}, func(msg *message.Message) error {
		msg.Metadata.Set("ran", "true")
		if !c.orders.Transactional() {
			return c.charge(msg.Context(), msg.Metadata.Get("id"))
		}
		tx, ok := semel.TxOf(msg.Context(), c.engine)
		if !ok {
			return errors.New("the handler has no transaction")
		}
		return c.ship(msg.Context(), tx, msg.Metadata.Get("id"))
	})
	return router.Run(ctx)
}

// watch wraps the inbox and reports what it does.
func (c *consumer) watch(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		redelivered := msg.Metadata.Get("redelivered") == "true"
		c.begin(msg.Metadata.Get("id"), redelivered)
		c.killAt(before)
		out, err := next(msg)
		c.killAt(after)
		d := inbox.Ack
		if err != nil || nacked(msg) {
			d = inbox.Redeliver
		}
		reportResult(d, d == inbox.Ack && msg.Metadata.Get("ran") == "", redelivered)
		return out, err
	}
}

// nacked reports whether the inbox has nacked the message itself.
func nacked(msg *message.Message) bool {
	select {
	case <-msg.Nacked():
		return true
	default:
		return false
	}
}

// ship is the effect in the record's transaction.
func (c *consumer) ship(ctx context.Context, tx pgx.Tx, id string) error {
	c.killAt(between)
	if _, err := tx.Exec(ctx, `insert into effects values ($1)`, id); err != nil {
		return fmt.Errorf("ship %s: %w", id, err)
	}
	c.killAt(acted)
	if rand.Float64() < c.Failing {
		return errors.New("the parcel is too heavy")
	}
	return nil
}

// charge is the effect elsewhere: at a receiver that deduplicates by key.
func (c *consumer) charge(ctx context.Context, id string) error {
	c.killAt(between)
	key, err := semel.ChildKey(ctx, "charge")
	if err != nil {
		return fmt.Errorf("name the charge: %w", err)
	}
	if _, err := c.pool.Exec(ctx, `insert into charges values ($1, $2) on conflict do nothing`, key, id); err != nil {
		return fmt.Errorf("charge: %w", err)
	}
	c.killAt(acted)
	return nil
}

// naive marks the message as processed, and then handles it.
func (c *consumer) naive(ctx context.Context, d amqp.Delivery) inbox.Result {
	tag, err := c.pool.Exec(ctx, `insert into processed_messages values ($1) on conflict do nothing`, d.MessageId)
	switch {
	case err != nil:
		return inbox.Result{Err: err}
	case tag.RowsAffected() == 0:
		return inbox.Result{Decision: inbox.Ack, Duplicate: true}
	}
	err = pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error { return c.ship(ctx, tx, d.MessageId) })
	if err != nil {
		return inbox.Result{Err: err, After: time.Millisecond}
	}
	return inbox.Result{Decision: inbox.Ack}
}

// prefetch is the number of unacknowledged deliveries.
func (c *consumer) prefetch() int {
	if c.Kill {
		return 1
	}
	return 16
}

// begin starts to handle a message.
func (c *consumer) begin(id string, redelivered bool) {
	_, point, _ := strings.Cut(id, " ")
	if redelivered {
		point = ""
	}
	c.point.Store(point)
}

// killAt kills the process at its point.
func (c *consumer) killAt(point string) {
	if !c.Kill || c.point.Load() != point {
		return
	}
	report("reached " + point)
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// report writes a whole line to the parent at once.
func report(words ...string) {
	_, _ = os.Stdout.WriteString(strings.Join(words, " ") + "\n")
}

func reportResult(d inbox.Decision, duplicate, redelivered bool) {
	words := []string{d.String()}
	if duplicate {
		words = append(words, "duplicate")
	}
	if redelivered {
		words = append(words, "redelivered")
	}
	report(words...)
}
