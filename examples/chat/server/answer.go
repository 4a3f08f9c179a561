package server

import (
	"encoding/json"
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
