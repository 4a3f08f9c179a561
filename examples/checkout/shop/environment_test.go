package shop_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store/sqlite"
)

// environment is everything around the shop: its database, its broker, the payment service
// and the mail service.
type environment struct {
	pool     *pgxpool.Pool
	payments *process
	charges  *sql.DB
	args     []string // of a shop that lives here
	requests chan string

	mu    sync.Mutex
	mails map[string][]string // by key: the texts of the mails that were accepted
}

func newTown(t *testing.T) *environment {
	t.Helper()
	w := &environment{requests: make(chan string, 10_000), mails: make(map[string][]string)}
	// The shop's engine requires a database that waits for the disk.
	db := realtest.OwnPostgres(t, "fsync=on", "full_page_writes=on", "synchronous_commit=on").Database(t)
	w.pool = ledger.Pool(t, db)
	file := filepath.Join(t.TempDir(), "payment.db")
	w.payments = newProcess(t, "payment", "-db", "sqlite:"+file, "-delay", "200ms")
	charging := w.front(t, "charge", "http://"+w.payments.Addr)
	mailing := httptest.NewServer(http.HandlerFunc(w.takeMail))
	t.Cleanup(mailing.Close)
	w.charges = check.Must(sqlite.Open(file))(t)
	t.Cleanup(func() { _ = w.charges.Close() })
	w.args = []string{
		"-db", db, "-amqp", realtest.RabbitMQ(t).URL(), "-lease", "2s",
		"-payments", "http://shop@" + strings.TrimPrefix(charging, "http://"), "-mail", mailing.URL,
	}
	return w
}

// front passes requests on to target, and says so in w.requests.
func (w *environment) front(t *testing.T, name, target string) string {
	t.Helper()
	u := check.Must(url.Parse(target))(t)
	proxy := &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(u) },
		ErrorHandler: func(rw http.ResponseWriter, _ *http.Request, _ error) { rw.WriteHeader(http.StatusBadGateway) },
	}
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.requests <- name
		proxy.ServeHTTP(rw, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// takeMail is a mail service that sends a mail once per key.
func (w *environment) takeMail(rw http.ResponseWriter, r *http.Request) {
	var m struct{ Subject string }
	key := r.Header.Get("Idempotency-Key")
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil || key == "" {
		rw.WriteHeader(http.StatusBadRequest)
		return
	}
	w.mu.Lock()
	w.mails[key] = append(w.mails[key], m.Subject)
	w.mu.Unlock()
	w.requests <- "mail"
	rw.WriteHeader(http.StatusAccepted)
}

// mailed counts, for each order, the keys under which its receipt was sent.
func (w *environment) mailed() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := make(map[string]int)
	for _, subjects := range w.mails {
		n[strings.TrimPrefix(subjects[0], "Your order ")]++
	}
	return n
}

// charged counts the charges for each order at the payment service.
func (w *environment) charged(t *testing.T) map[string]int {
	t.Helper()
	rows := check.Must(w.charges.QueryContext(t.Context(), `select reference, count(*) from charges group by reference`))(t)
	defer func() { _ = rows.Close() }()
	return counts(t, rows)
}

// rows counts, for each order, the rows of one of the shop's tables.
func (w *environment) rows(t *testing.T, table string) map[string]int {
	t.Helper()
	rows := check.Must(w.pool.Query(t.Context(), `select order_id, count(*) from `+table+` group by order_id`))(t)
	defer rows.Close()
	return counts(t, rows)
}

// counts reads rows with an order and a number.
func counts(t *testing.T, rows interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
},
) map[string]int {
	t.Helper()
	n := make(map[string]int)
	for rows.Next() {
		var (
			order string
			count int
		)
		check.Require(t, rows.Scan(&order, &count))
		n[order] = count
	}
	check.Require(t, rows.Err())
	return n
}

// repeated counts the records of an operation that took more than one attempt.
func (w *environment) repeated(t *testing.T, operation string) (n int) {
	t.Helper()
	check.Require(t, w.pool.QueryRow(t.Context(),
		`select count(*) from semel_records where operation = $1 and attempt > 1`, []byte(operation)).Scan(&n))
	return n
}

// settled waits until every one of n orders has a receipt and a shipment.
func (w *environment) settled(t *testing.T, n int) {
	t.Helper()
	realtest.Poll(t, fmt.Sprintf("%d receipts and shipments", n), func() bool {
		return len(w.mailed()) >= n && len(w.rows(t, "shipments")) >= n
	})
}
