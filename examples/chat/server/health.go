package server

import (
	"context"
	"database/sql"
	"net/http"
	"time"
)

// healthy says that the process serves.
func (s *app) healthy(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// ready says whether requests can be served: the databases answer, and the
// server is not about to stop.
func (s *app) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	if s.stopping.Load() {
		problem(codeUnavailable, "", "The server is stopping.").Write(w)
		return
	}
	for _, db := range []*sql.DB{s.domain, s.recordsDB} {
		var one int
		if err := db.QueryRowContext(ctx, "select 1 from sqlite_schema limit 1").Scan(&one); err != nil {
			s.refuse(w, r, err)
			return
		}
	}
	writeJSON(w, http.StatusOK, map[string]string{"status": "ready"})
}
