package server

import (
	"context"
	"net/http"
	"time"
)

// healthy responds 200 while the process serves.
func (s *app) healthy(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// ready responds 200 if the databases respond.
func (s *app) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	for _, db := range []*database{s.domain, s.records} {
		if err := db.Ping(ctx); err != nil {
			s.refuse(w, r, err)
			return
		}
	}
	writeJSON(w, http.StatusOK, map[string]string{"status": "ready"})
}
