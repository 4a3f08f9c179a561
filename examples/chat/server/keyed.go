package server

import (
	"net/http"

	"github.com/semelgo/semel/semelhttp"
)

// keyed returns the options of the endpoints that require a key.
func (s *app) keyed() semelhttp.Options {
	return semelhttp.Options{ScopeFunc: scopeFunc, MaxBody: maxBody, ErrorFunc: s.logError}
}

// declaration returns the handler that declares to clients how keys work.
func (s *app) declaration() (http.Handler, error) {
	return semelhttp.Declare(s.keyed(), semelhttp.Terms{
		Methods: []string{http.MethodPost}, Retention: s.config.retention, Wait: s.config.wait, KeyTime: "uuidv7", Value: true,
	})
}
