package server

import (
	_ "embed"
	"net/http"
)

// description tells programs what the API takes and answers, and what the keys
// of its operations promise.
//
//go:embed openapi.yaml
var description []byte

// describe answers with the description.
func describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	w.Header().Set("Cache-Control", "no-cache") // it changes with the program
	_, _ = w.Write(description)
}
