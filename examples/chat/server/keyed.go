package server

import (
	"net/http"

	"github.com/semelgo/semel/semelhttp"
)

// keyed is how endpoints with a key are protected.
func (s *app) keyed() semelhttp.Options {
	return semelhttp.Options{ScopeFunc: scopeFunc, MaxBody: maxBody, ErrorFunc: s.logError}
}

// declaration tells programs what the keys promise: what keyed and the
// operations say.
func (s *app) declaration() (http.Handler, error) {
	return semelhttp.Declare(s.keyed(), semelhttp.Terms{
		Methods: []string{http.MethodPost}, Retention: s.config.retention, Wait: s.config.wait, KeyTime: "uuidv7", Value: true,
	})
}
