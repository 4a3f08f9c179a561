package server

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
)

// writeJSON writes v as the response.
func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // fails only after the client has disconnected
}

// answering returns a handler that responds with the value of fn, or with the
// problem of its error.
func (s *app) answering(status int, fn func(r *http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := fn(r)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		writeJSON(w, status, v)
	})
}

// refuse responds with err's problem, and logs the cause that the client does not
// receive.
func (s *app) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	if p.Status >= http.StatusInternalServerError {
		s.logError(r, err)
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	p.Write(w)
}

// logError logs an error that the client does not receive, unless the client has
// disconnected.
func (s *app) logError(r *http.Request, err error) {
	if !errors.Is(err, context.Canceled) {
		s.log.LogAttrs(r.Context(), slog.LevelError, "request",
			slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.String("error", err.Error()))
	}
}
