package server

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"
)

// TestReadyAsksBothDatabases is in the package because it closes a database.
func TestReadyAsksBothDatabases(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*app) error{
		"domain":  func(s *app) error { return s.domain.Close() },
		"records": func(s *app) error { return s.records.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c := config{
				db: filepath.Join(dir, "chat.db"), records: filepath.Join(dir, "records.db"), mode: modeApart, lease: time.Minute,
				retention: retention, sweep: time.Minute,
			}
			s := openApp(t, c)
			ask := func(path string) int {
				w := httptest.NewRecorder()
				s.handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
				return w.Code
			}
			if got := ask("/readyz"); got != http.StatusOK {
				t.Errorf("ready = %d, want 200", got)
			}
			if err := lose(s); err != nil {
				t.Fatal(err)
			}
			if got := ask("/readyz"); got != http.StatusServiceUnavailable {
				t.Errorf("ready without the %s database = %d, want 503", name, got)
			}
			if got := ask("/healthz"); got != http.StatusOK {
				t.Errorf("healthy = %d, want 200", got)
			}
		})
	}
}
