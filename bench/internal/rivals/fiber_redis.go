package rivals

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/idempotency"
	fiberredis "github.com/gofiber/storage/redis/v3"
	driver "github.com/redis/go-redis/v9"
	"github.com/valyala/fasthttp"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/payment"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store/redis"
)

const (
	fiberRedisRow       = "gofiber's middleware over Redis (appendfsync always), 64 callers: first runs; Semel's middleware on the same Redis"
	fiberRedisReplayRow = "gofiber's middleware over Redis, 64 callers: replays; the same, without its cache"

	fiberRedisDiffers = "gofiber 3.1.0 with its storage for Redis, a pool of 64 connections, and its lock, which is in the process: " +
		"a request in two processes runs twice, and a crash leaves nothing behind. It reads twice and writes once; Semel claims and completes, with two writes. " +
		"Its keys are those of all users and routes, and it does not look at the body"
)

// againstFiberOnRedis compares the two middlewares without a network before them.
func againstFiberOnRedis(ctx context.Context, l *lab.Lab) ([]goal.Finding, error) {
	server, err := startRedis(ctx, l)
	if err != nil {
		return nil, err
	}
	ours, err := semelOnRedis(l, server)
	if err != nil {
		return nil, err
	}
	storage := fiberredis.New(fiberredis.Config{Addrs: []string{server.addr}, PoolSize: callers})
	l.Closing(storage.Close)
	theirs := fiberOnRedis(storage)
	var found []goal.Finding
	for row, key := range map[string]func(*contest.Caller) string{
		fiberRedisRow:       func(c *contest.Caller) string { return c.Key() },
		fiberRedisReplayRow: func(c *contest.Caller) string { return fmt.Sprintf("8e03978e-40d5-43e8-bc93-%012d", c.N) },
	} {
		c := contest.Contest{
			Name: row, Callers: callers, Server: server.usage,
			Sides: []contest.Side{
				{Name: "gofiber", Do: func(_ context.Context, c *contest.Caller) error { return theirs(key(c)) }},
				{Name: "Semel", Do: func(ctx context.Context, c *contest.Caller) error { return ours(ctx, payment.Scope(c.N), key(c)) }},
			},
		}
		o, err := c.Run(ctx, l)
		if err != nil {
			return found, err
		}
		f := o.Compared(row, "Semel", "gofiber", contest.Throughput)
		f.Detail += "; " + fiberRedisDiffers
		found = append(found, f)
	}
	return found, nil
}

const paymentBody = `{"account":"DE02120300000000202051","amount":4200,"currency":"EUR"}`

// semelOnRedis returns a function that sends a request of a user with a key.
func semelOnRedis(l *lab.Lab, server *redisServer) (func(ctx context.Context, user, key string) error, error) {
	client := driver.NewClient(&driver.Options{Addr: server.addr, PoolSize: callers})
	l.Closing(client.Close)
	s, err := redis.New(client, redis.Options{})
	if err != nil {
		return nil, err
	}
	engine, err := semel.NewRunner(s, semel.Options{})
	if err != nil {
		return nil, err
	}
	l.Closing(func() error { return engine.Close(context.Background()) })
	protect, err := semelhttp.Middleware(engine, semel.Define("http_payment", semel.OperationOptions[semelhttp.Request]{}), semelhttp.Options{
		ScopeFunc: func(r *http.Request) (semel.Scope, error) { return semel.ScopeOf(r.Header.Get("X-User")), nil },
	})
	if err != nil {
		return nil, err
	}
	handler := protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(payment.Result())
	}))
	return func(ctx context.Context, user, key string) error {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/payments", bytes.NewBufferString(paymentBody))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-User", user)
		r.Header.Set(semelhttp.HeaderKey, key)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return asExpected(w.Code, w.Body.Len())
	}, nil
}

// fiberOnRedis returns a function that sends a request with a key.
func fiberOnRedis(storage fiber.Storage) func(key string) error {
	app := fiber.New()
	app.Use(idempotency.New(idempotency.Config{Storage: storage}))
	app.Post("/payments", func(c fiber.Ctx) error {
		_ = c.Body()
		c.Set(fiber.HeaderContentType, "application/json")
		return c.Status(fiber.StatusCreated).Send(payment.Result())
	})
	handler := app.Handler()
	return func(key string) error {
		var c fasthttp.RequestCtx
		c.Request.Header.SetMethod(fasthttp.MethodPost)
		c.Request.SetRequestURI("/payments")
		c.Request.Header.SetContentType("application/json")
		c.Request.SetBodyString(paymentBody)
		c.Request.Header.Set("X-Idempotency-Key", key)
		handler(&c)
		return asExpected(c.Response.StatusCode(), len(c.Response.Body()))
	}
}

func asExpected(status, size int) error {
	if status != http.StatusCreated || size != payment.Size {
		return fmt.Errorf("answered %d with %d bytes", status, size)
	}
	return nil
}
