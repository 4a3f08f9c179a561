package server

import (
	"bytes"
	_ "embed"
	"fmt"
	"net/http"
	"time"
)

// description is the OpenAPI description of the API, with the guarantees of its
// keys.
//
//go:embed openapi.yaml
var description []byte

// describe responds with the description, with the values of the flags filled in.
func (s *app) describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	w.Header().Set("Cache-Control", "no-cache") // the description changes with the program
	_, _ = w.Write(bytes.ReplaceAll(description, []byte(iso(retention)), []byte(iso(s.config.retention))))
}

// iso formats a duration as ISO 8601, in days or in seconds.
func iso(d time.Duration) string {
	const day = 24 * time.Hour
	if d%day == 0 {
		return fmt.Sprintf("P%dD", d/day)
	}
	return fmt.Sprintf("PT%gS", d.Seconds())
}
