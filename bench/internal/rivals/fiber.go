package rivals

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/idempotency"
	"github.com/valyala/fasthttp"

	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/payment"
	"github.com/semelgo/semel/bench/internal/stat"
)

const (
	fiberFirst        = "gofiber's middleware over memory, first run: time above its bare handler"
	fiberFirstAllocs  = "gofiber's middleware over memory, first run: allocations above its bare handler"
	fiberReplay       = "gofiber's middleware over memory, replay: time above its bare handler"
	fiberReplayAllocs = "gofiber's middleware over memory, replay: allocations above its bare handler"

	fiberDiffers = "gofiber 3.1.0, defaults; its keys are those of all users and routes, and it does not look at the body, " +
		"which Semel's middleware digests and compares; to be read beside the rows of HTTP over memory"
)

// fiberCost is the cost of a request.
type fiberCost struct{ micros, allocs float64 }

// againstFiber measures what the middleware adds to requests, in rounds that are
// spread over the run like our own.
func againstFiber() func(context.Context, *lab.Lab) ([]goal.Finding, error) {
	first, replay := fiberRounds{}, fiberRounds{repeat: true}
	return func(ctx context.Context, l *lab.Lab) ([]goal.Finding, error) {
		err := first.more(ctx, l)
		if err == nil {
			err = replay.more(ctx, l)
		}
		return append(first.found(fiberFirst, fiberFirstAllocs), replay.found(fiberReplay, fiberReplayAllocs)...), err
	}
}

// fiberRounds holds the measurements so far.
type fiberRounds struct {
	repeat            bool
	bares, protecteds []float64 // in microseconds
	allocs            []float64 // added by the middleware
}

// more runs one round.
func (r *fiberRounds) more(ctx context.Context, l *lab.Lab) error {
	bare, err := fiberRequest(false, r.repeat)
	if err != nil {
		return err
	}
	protected, err := fiberRequest(true, r.repeat)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r.bares, r.protecteds = append(r.bares, bare.micros), append(r.protecteds, protected.micros)
	r.allocs = append(r.allocs, protected.allocs-bare.allocs)
	l.Logf("gofiber, replay %t, round %d: bare %.3g µs, protected %.3g µs", r.repeat, len(r.bares), bare.micros, protected.micros)
	return nil
}

// found returns what the middleware adds, based on the fastest round, as our rows
// are.
func (r *fiberRounds) found(micros, allocs string) []goal.Finding {
	if len(r.bares) == 0 {
		return nil
	}
	return []goal.Finding{
		{Row: micros, Value: slices.Min(r.protecteds) - slices.Min(r.bares), Detail: fiberDiffers},
		{Row: allocs, Value: stat.Median(r.allocs), Detail: fiberDiffers},
	}
}

// fiberRequest measures a request with a repeated key, or with a new key each time.
func fiberRequest(protected, repeat bool) (fiberCost, error) {
	var wrong error
	r := testing.Benchmark(func(b *testing.B) {
		b.Helper()
		c := newFiberClient(protected)
		c.send()
		b.ReportAllocs()
		for b.Loop() {
			if !repeat {
				c.n++
			}
			c.send()
		}
		wrong = errors.Join(wrong, c.check())
	})
	return fiberCost{
		micros: float64(r.T.Nanoseconds()) / 1000 / float64(max(r.N, 1)),
		allocs: float64(r.AllocsPerOp()),
	}, wrong
}

// fiberClient sends the same request again and again, with the key of its number.
type fiberClient struct {
	handle  fasthttp.RequestHandler
	request fasthttp.RequestCtx
	n       int
}

func newFiberClient(protected bool) *fiberClient {
	c := &fiberClient{handle: fiberHandler(protected)}
	c.request.Request.Header.SetMethod(fasthttp.MethodPost)
	c.request.Request.SetRequestURI("/payments")
	c.request.Request.Header.SetContentType("application/json")
	c.request.Request.SetBodyString(`{"account":"DE02120300000000202051","amount":4200,"currency":"EUR","note":"semel once, a single time."}`)
	return c
}

func (c *fiberClient) send() {
	c.request.Response.Reset()
	c.request.Request.Header.Set("X-Idempotency-Key", "8e03978e-40d5-43e8-bc93-"+strconv.Itoa(100_000_000_000+c.n))
	c.handle(&c.request)
}

// check returns what is wrong with the last response.
func (c *fiberClient) check() error {
	if status, size := c.request.Response.StatusCode(), len(c.request.Response.Body()); status != fiber.StatusCreated || size != payment.Size {
		return fmt.Errorf("answered %d with %d bytes", status, size)
	}
	return nil
}

// fiberHandler reads the request, as all compared handlers do, and responds with a
// payment.
func fiberHandler(protected bool) fasthttp.RequestHandler {
	app := fiber.New()
	if protected {
		app.Use(idempotency.New())
	}
	app.Post("/payments", func(c fiber.Ctx) error {
		_ = c.Body()
		c.Set(fiber.HeaderContentType, "application/json")
		return c.Status(fiber.StatusCreated).Send(payment.Result())
	})
	return app.Handler()
}
