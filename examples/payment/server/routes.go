package server

import (
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/semelhttp"
)

// retention is how long a key is remembered. A merchant retries for as long as its
// own records last, so this must be longer.
const retention = 90 * 24 * time.Hour

var createCharge = semel.Define("create_charge", semel.OperationOptions[semelhttp.Request]{Retention: retention})

// routes returns the handler of all endpoints.
func (s *service) routes() (http.Handler, error) {
	once, err := semelhttp.Atomic(s.engine, createCharge, semelhttp.Options{
		ScopeFunc: scopeFunc,
		MaxBody:   maxBody,
		ErrorFunc: s.logError,
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /v1/charges", authenticated(decoded(s.slowly(once(http.HandlerFunc(s.create))))))
	mux.Handle("GET /v1/charges", authenticated(http.HandlerFunc(s.list)))
	mux.Handle("GET /problems/", semelhttp.Problems())
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	return mux, nil
}

// create charges in the transaction of the key's record. A declined charge is
// stored with the key; an error of the database is not.
func (s *service) create(w http.ResponseWriter, r *http.Request) {
	tx, _ := semel.TxOf(r.Context(), s.engine)
	n := chargeIn(r.Context())
	if n.Amount > maxAmount {
		refuse(w, http.StatusPaymentRequired, "declined", "amount", "The charge was declined. Nothing was charged, and this key stays declined.")
		return
	}
	c, err := chargeTx(r.Context(), tx, merchantIn(r.Context()), n)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Location", "/v1/charges?reference="+url.QueryEscape(c.Reference))
	writeJSON(w, http.StatusCreated, c)
}

// list responds with all charges that have a reference.
func (s *service) list(w http.ResponseWriter, r *http.Request) {
	reference := r.URL.Query().Get("reference")
	if reference == "" {
		refuse(w, http.StatusBadRequest, "invalid", "reference", "Say which reference.")
		return
	}
	charges, err := chargesOf(r.Context(), s.db, merchantIn(r.Context()), reference)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"count": len(charges), "charges": charges})
}

// slowly delays each request before and after next handles it.
func (s *service) slowly(next http.Handler) http.Handler {
	pause := func(r *http.Request) {
		if s.config.delay <= 0 {
			return
		}
		select {
		case <-time.After(rand.N(s.config.delay)):
		case <-r.Context().Done():
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pause(r)
		next.ServeHTTP(w, r)
		pause(r)
	})
}

func (s *service) fail(w http.ResponseWriter, r *http.Request, err error) {
	s.logError(r, err)
	refuse(w, http.StatusInternalServerError, "internal", "", "Nothing was charged. Send the same request with the same key.")
}

func (s *service) logError(r *http.Request, err error) {
	s.log.LogAttrs(r.Context(), slog.LevelError, "request",
		slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.String("error", err.Error()))
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // fails only after the client has disconnected
}
