// Package shop is a web shop with a plain HTML form. A one-time token in the form makes
// each form that was opened place one order.
package shop

import (
	"context"
	"crypto/rand"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/onetime"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store/sqlite"
)

// opening is the payload of a token: what the shop knows before the form is sent.
type opening struct {
	At time.Time
}

// placeOrder is what the tokens of the form are for. A visitor can have 50 open forms.
var placeOrder = onetime.Define[opening]("place_order", onetime.Options{MaxOpen: 50})

// formTTL is how long a form can be sent after it was opened.
const formTTL = time.Hour

// sessionCookie has the visitor's session, which is the subject of the tokens.
const sessionCookie = "shop_session"

//go:embed pages.html
var pagesHTML string

// Shop is the web shop over one SQLite database.
type Shop struct {
	db      *sql.DB
	engine  *semel.Engine[*sql.Tx]
	pages   *template.Template
	submit  http.Handler
	sweeper sweeper
}

// sweeper is the background job that removes old records.
type sweeper struct {
	stop  context.CancelFunc
	ended chan error
}

// Open opens the shop, and creates its tables in a new file.
func Open(ctx context.Context, file string) (*Shop, error) {
	db, err := sqlite.Open(file) //nolint:contextcheck // it bounds itself
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	s, err := open(ctx, db)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

func open(ctx context.Context, db *sql.DB) (*Shop, error) {
	if err := sqlitemigrate.Up(ctx, db, sqlitemigrate.Options{}); err != nil {
		return nil, fmt.Errorf("create the tables of the records: %w", err)
	}
	_, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS orders (
		id INTEGER PRIMARY KEY, session TEXT NOT NULL, tea TEXT NOT NULL, grams INTEGER NOT NULL, opened TEXT NOT NULL)`)
	if err != nil {
		return nil, fmt.Errorf("create the table of orders: %w", err)
	}
	engine, err := semel.New(sqlite.New(db, sqlite.Options{}), semel.Options{Operations: []semel.Declared{placeOrder.Operation()}})
	if err != nil {
		return nil, fmt.Errorf("open the engine: %w", err)
	}
	s := &Shop{db: db, engine: engine, pages: template.Must(template.New("").Parse(pagesHTML))}
	once, err := semelhttp.FormTx(engine, placeOrder, semelhttp.FormOptions{ScopeFunc: subjectOf, Page: s.pages.Lookup("problem"), MaxBody: 4096})
	if err != nil {
		return nil, fmt.Errorf("protect the form: %w", err)
	}
	s.submit = once(http.HandlerFunc(s.order))
	sweep, err := admin.NewSweeper(engine, admin.SweeperOptions{})
	if err != nil {
		return nil, fmt.Errorf("open the sweeper: %w", err)
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.sweeper = sweeper{stop, make(chan error, 1)}
	go func() { s.sweeper.ended <- sweep.Run(running) }()
	return s, nil
}

// Close waits for running requests and closes the database.
func (s *Shop) Close(ctx context.Context) error {
	s.sweeper.stop()
	return errors.Join(<-s.sweeper.ended, s.engine.Close(ctx), s.db.Close())
}

// Handler returns the shop's pages. Requests that another site has caused are refused.
func (s *Shop) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.form)
	mux.Handle("POST /orders", s.submit)
	mux.HandleFunc("GET /orders/{id}", s.show)
	return http.NewCrossOriginProtection().Handler(mux)
}

// session returns the visitor's session, or "" for a new visitor.
func session(r *http.Request) string {
	c, err := r.Cookie(sessionCookie)
	if err != nil {
		return ""
	}
	return c.Value
}

// subjectOf returns the subject of a visitor's tokens.
func subjectOf(r *http.Request) (semel.Scope, error) {
	return semel.ScopeOf(session(r)), nil // without a session it is invalid, and refused
}

// page is what the templates get.
type page struct {
	Token, Tea, Grams, Wrong string
	Order                    int64
	Orders                   int
}

// form is the page with the form. Each time it is loaded, it has a new token.
func (s *Shop) form(w http.ResponseWriter, r *http.Request) {
	id := session(r)
	if id == "" {
		id = rand.Text()
		http.SetCookie(w, &http.Cookie{Name: sessionCookie, Value: id, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
	}
	token, err := placeOrder.Issue(r.Context(), s.engine, semel.ScopeOf(id), formTTL, opening{At: time.Now().UTC()})
	switch {
	case errors.Is(err, onetime.ErrTooMany):
		http.Error(w, "You have opened this form too often. Wait an hour, or send one of the open forms.", http.StatusTooManyRequests)
		return
	case err != nil:
		http.Error(w, "The shop is closed for a moment.", http.StatusServiceUnavailable)
		return
	}
	s.write(w, http.StatusOK, "form", page{Token: token, Grams: "100"})
}

// order places an order, in the transaction that also uses the token. It shows the form
// again, with the same token, if something is missing.
func (s *Shop) order(w http.ResponseWriter, r *http.Request) {
	p := page{
		Token: r.PostFormValue(semelhttp.DefaultTokenField), Tea: strings.TrimSpace(r.PostFormValue("tea")), Grams: r.PostFormValue("grams"),
	}
	grams, err := strconv.Atoi(p.Grams)
	switch {
	case p.Tea == "":
		p.Wrong = "Which tea would you like?"
	case err != nil || grams < 1 || grams > 1000:
		p.Wrong = "Between 1 and 1000 grams, please."
	}
	if p.Wrong != "" {
		s.write(w, http.StatusUnprocessableEntity, "form", p)
		return
	}
	id, err := s.insert(r.Context(), session(r), p.Tea, grams)
	if err != nil {
		http.Error(w, "The order was not placed.", http.StatusInternalServerError)
		return
	}
	http.Redirect(w, r, "/orders/"+strconv.FormatInt(id, 10), http.StatusSeeOther)
}

func (s *Shop) insert(ctx context.Context, session, tea string, grams int) (int64, error) {
	tx, ok := semel.TxOf(ctx, s.engine)
	if !ok {
		return 0, errors.New("there is no transaction")
	}
	opened, err := placeOrder.Payload(ctx)
	if err != nil {
		return 0, err
	}
	result, err := tx.ExecContext(ctx, `INSERT INTO orders (session, tea, grams, opened) VALUES (?, ?, ?, ?)`,
		session, tea, grams, opened.At.Format(time.RFC3339Nano))
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

// show is the page about an order.
func (s *Shop) show(w http.ResponseWriter, r *http.Request) {
	var p page
	err := s.db.QueryRowContext(r.Context(), `SELECT id, tea, grams, (SELECT count(*) FROM orders WHERE session = o.session)
		FROM orders o WHERE id = ? AND session = ?`, r.PathValue("id"), session(r)).Scan(&p.Order, &p.Tea, &p.Grams, &p.Orders)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	s.write(w, http.StatusOK, "order", p)
}

// write sends a page. It must not say no-store: the back button would then fetch a form
// with another token.
func (s *Shop) write(w http.ResponseWriter, status int, name string, p page) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "private, no-cache")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'")
	w.WriteHeader(status)
	_ = s.pages.ExecuteTemplate(w, name, p) // fails only if the client hung up
}
