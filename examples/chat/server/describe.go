package server

import (
	"bytes"
	_ "embed"
	"fmt"
	"net/http"
	"time"
)

// description tells programs what the API takes and answers, and what the keys
// of its operations promise.
//
//go:embed openapi.yaml
var description []byte

// describe answers with the description, as the flags make it.
func (s *app) describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	w.Header().Set("Cache-Control", "no-cache") // it changes with the program
	_, _ = w.Write(bytes.ReplaceAll(description, []byte(iso(retention)), []byte(iso(s.config.retention))))
}

// iso writes a duration as ISO 8601 does, in days or in seconds.
func iso(d time.Duration) string {
	const day = 24 * time.Hour
	if d%day == 0 {
		return fmt.Sprintf("P%dD", d/day)
	}
	return fmt.Sprintf("PT%gS", d.Seconds())
}
