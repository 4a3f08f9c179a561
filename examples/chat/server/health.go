package server

import (
	"context"
	"net/http"
	"time"
)

// healthy says that the process serves.
func (s *app) healthy(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// ready says whether requests can be served: whether the databases answer.
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
