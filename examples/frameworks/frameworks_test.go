package frameworks_test

import (
	"context"
	"database/sql"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/labstack/echo/v4"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/examples/frameworks"
	"github.com/semelgo/semel/internal/check"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
	"github.com/semelgo/semel/store/storetest"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	os.Exit(m.Run())
}

// shop is a shop that is served by a framework, and its database.
type shop struct {
	*frameworks.Shop

	url    string
	client *http.Client
	db     *sql.DB
	faults *storetest.FaultyTx[*sql.Tx]
}

func newShop(t *testing.T, serve func(*frameworks.Shop) http.Handler) *shop {
	t.Helper()
	db := check.Must(sqlite.Open(filepath.Join(t.TempDir(), "shop.db")))(t)
	t.Cleanup(func() { _ = db.Close() })
	check.Require(t, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}))
	check.Must(db.ExecContext(t.Context(), `CREATE TABLE orders (id INTEGER PRIMARY KEY, shop TEXT, item TEXT)`))(t)
	s := &shop{db: db, faults: storetest.NewFaultyTx(sqlite.New(db, sqlite.Options{}), nil)}
	engine := check.Must(semel.New(s.faults, semel.Options{Wait: time.Minute}))(t)
	t.Cleanup(func() { check.NoError(t, engine.Close(context.WithoutCancel(t.Context()))) })
	s.Shop = &frameworks.Shop{Engine: engine}
	server := httptest.NewServer(timed(serve(s.Shop)))
	t.Cleanup(server.Close)
	s.url, s.client = server.URL, server.Client()
	return s
}

// timed sets a header when the status is written, as middlewares that measure do.
func timed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(&timedWriter{w}, r) })
}

type timedWriter struct{ http.ResponseWriter }

func (w *timedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *timedWriter) WriteHeader(status int) {
	w.Header().Set("Server-Timing", "total")
	w.ResponseWriter.WriteHeader(status)
}

// response is a response that was read.
type response struct {
	status   int
	body     string
	location string
	replayed bool
	timing   string
}

func (s *shop) order(t *testing.T, key, body string) response {
	t.Helper()
	return s.orderAs(t, "ann", "books", key, body)
}

func (s *shop) orderAs(t *testing.T, user, name, key, body string) response {
	t.Helper()
	r := check.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/shops/"+name+"/orders", strings.NewReader(body)))(t)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	r.Header.Set("X-User", user)
	res, err := s.client.Do(r)
	if err != nil {
		t.Error(err)
		return response{}
	}
	defer res.Body.Close()
	text := check.Must(io.ReadAll(res.Body))(t)
	return response{
		res.StatusCode, string(text), res.Header.Get("Location"), res.Header.Get(semelhttp.HeaderReplayed) == "true", res.Header.Get("Server-Timing"),
	}
}

func (s *shop) orders(t *testing.T) (n int) {
	t.Helper()
	check.Require(t, s.db.QueryRowContext(t.Context(), `SELECT count(*) FROM orders`).Scan(&n))
	return n
}

// conflict makes the database abort the next transaction.
func (s *shop) conflict() {
	s.faults.Decide(func(c storetest.Call) storetest.Fault {
		if c.Method == "Atomic" && c.MethodN == 1 {
			return storetest.Fault{Rollback: store.ErrConflict}
		}
		return storetest.Fault{}
	})
}

// onEach runs a test with each framework.
func onEach(t *testing.T, test func(t *testing.T, s *shop)) {
	t.Helper()
	t.Parallel()
	for name, serve := range map[string]func(*frameworks.Shop) http.Handler{
		"chi": (*frameworks.Shop).Chi, "gin": (*frameworks.Shop).Gin, "echo": (*frameworks.Shop).Echo,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newShop(t, serve))
		})
	}
}

const book = `{"item":"book"}`

// TestRetry: a retry gets the first response, with its headers, and orders nothing. The
// headers of middlewares outside are on both.
func TestRetry(t *testing.T) {
	onEach(t, func(t *testing.T, s *shop) {
		first := s.order(t, "key-1", book)
		check.Equal(t, first, response{http.StatusCreated, first.body, "/orders/1", false, "total"}, "the response")
		check.Equal(t, strings.TrimSpace(first.body), `{"id":1,"shop":"books","item":"book"}`, "the body")
		want := first
		want.replayed = true
		check.Equal(t, s.order(t, "key-1", book), want, "the retry")
		check.Equal(t, s.order(t, "key-2", book).location, "/orders/2", "the location of another order")
		check.Equal(t, s.orders(t), 2, "orders")
	})
}

// TestOtherRequest: a key that was used for another body is refused, and one that was used for
// another path of the same route. The key of another user, whom the framework's context names,
// is another key.
func TestOtherRequest(t *testing.T) {
	onEach(t, func(t *testing.T, s *shop) {
		s.order(t, "key-1", book)
		check.Equal(t, s.orderAs(t, "ann", "maps", "key-1", book).status, http.StatusUnprocessableEntity, "the status of another path")
		check.Equal(t, s.orderAs(t, "bob", "books", "key-1", book).location, "/orders/2", "the location of another user's order")
		check.Equal(t, s.order(t, "key-1", `{"item":"pen"}`).status, http.StatusUnprocessableEntity, "the status")
		check.Equal(t, s.order(t, "", book).status, http.StatusBadRequest, "the status without a key")
	})
}

// TestRefusal: a refusal is stored, and its writes are rolled back.
func TestRefusal(t *testing.T) {
	onEach(t, func(t *testing.T, s *shop) {
		first := s.order(t, "key-1", `{"item":"unicorn"}`)
		check.Equal(t, first.status, http.StatusConflict, "the status")
		want := first
		want.replayed = true
		check.Equal(t, s.order(t, "key-1", `{"item":"unicorn"}`), want, "the retry")
		check.Equal(t, s.orders(t), 0, "orders")
	})
}

// TestConflict: if the database aborts the transaction, the handler runs again, and its
// second response is the one that counts.
func TestConflict(t *testing.T) {
	onEach(t, func(t *testing.T, s *shop) {
		s.conflict()
		first := s.order(t, "key-1", book)
		check.Equal(t, first.status, http.StatusCreated, "the status")
		check.Equal(t, first.location, "/orders/1", "the location")
		check.Equal(t, s.faults.CallsOf("Atomic"), 2, "transactions")
		check.Equal(t, s.orders(t), 1, "orders")
	})
}

// TestPanic: after a panic nothing is stored, the framework's recoverer answers, and the key
// may be used again.
func TestPanic(t *testing.T) {
	onEach(t, func(t *testing.T, s *shop) {
		engine := s.Engine
		s.Engine = nil // the handler panics
		check.Equal(t, s.order(t, "key-1", book).status, http.StatusInternalServerError, "the status")
		s.Engine = engine
		check.Equal(t, s.order(t, "key-1", book).location, "/orders/1", "the location")
	})
}

// TestFlush: a handler may flush its response in parts, which the client gets after the
// commit.
func TestFlush(t *testing.T) {
	t.Parallel()
	flush := func(w http.ResponseWriter) {
		for _, part := range []string{"first ", "second"} {
			_, _ = io.WriteString(w, part)
			if err := http.NewResponseController(w).Flush(); err != nil {
				panic(err)
			}
		}
	}
	for name, serve := range map[string]func(s *frameworks.Shop) http.Handler{
		"gin": func(s *frameworks.Shop) http.Handler {
			r := gin.New()
			r.POST("/shops/:shop/orders", frameworks.GinOnce(s.Once("flush"), func(c *gin.Context) { flush(c.Writer) }))
			return r
		},
		"echo": func(s *frameworks.Shop) http.Handler {
			e := echo.New()
			e.POST("/shops/:shop/orders", func(c echo.Context) error { flush(c.Response()); return nil }, frameworks.EchoOnce(s.Once("flush")))
			return e
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, func(s *frameworks.Shop) http.Handler { return asAnn(serve(s)) })
			first, again := s.order(t, "key-1", book), s.order(t, "key-1", book)
			check.Equal(t, first.body, "first second", "the body")
			check.Equal(t, again.body, first.body, "the body of the retry")
			check.Equal(t, again.replayed, true, "replayed")
		})
	}
}

func asAnn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, frameworks.WithUser(r, "ann")) })
}

// TestUsualAdapters shows why the adapters exist: the usual ones commit an empty success when
// echo's handler returns an error, and when gin's handler has to run again.
func TestUsualAdapters(t *testing.T) {
	t.Parallel()
	withEcho := newShop(t, func(s *frameworks.Shop) http.Handler {
		e := echo.New()
		refuse := func(echo.Context) error { return echo.NewHTTPError(http.StatusConflict) }
		e.POST("/shops/:shop/orders", refuse, echo.WrapMiddleware(s.Once("refuse")))
		return asAnn(e)
	})
	check.Equal(t, withEcho.order(t, "key-1", book).status, http.StatusOK, "the status with echo.WrapMiddleware")

	withGin := newShop(t, func(s *frameworks.Shop) http.Handler {
		r := gin.New()
		r.Use(func(c *gin.Context) {
			s.Once("next")(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { c.Request = r; c.Next() })).ServeHTTP(c.Writer, c.Request)
		})
		r.POST("/shops/:shop/orders", func(c *gin.Context) { _, _ = s.Create(c.Request.Context(), frameworks.Order{Item: "book"}) })
		return asAnn(r)
	})
	withGin.conflict()
	withGin.order(t, "key-1", book)
	check.Equal(t, withGin.orders(t), 0, "orders with c.Next")
}
