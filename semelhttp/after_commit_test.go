package semelhttp_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// TestSwallowedError: a handler ignores an error of its statement and reports
// success. If the database has rolled back, the response is not sent: there is no
// response without its effect.
func TestSwallowedError(t *testing.T) {
	t.Parallel()
	onWays(t, inATransaction, func(t *testing.T, s *protectedSite) {
		if s.spoil == nil {
			t.Skip("this store refuses no statement")
		}
		base := serve(t, s.protect(t, options(), s.handler(func(w http.ResponseWriter, r *http.Request) error {
			if s.ran.Load() > 1 {
				return s.creates(w, r)
			}
			if err := s.effect(r.Context()); err != nil {
				return err
			}
			check.Fails(t, s.spoil(r.Context()), "the database takes what it should refuse")
			w.WriteHeader(http.StatusCreated)
			_, err := io.WriteString(w, "all is well")
			return err
		})))
		got := s.ask().do(t, base)
		if got.status < 500 || strings.Contains(got.body, "well") {
			t.Errorf("got %d %s, want a response that does not mention it", got.status, got.body)
		}
		if s.had() != 0 || s.record().State == store.Succeeded {
			t.Errorf("there are %d effects, and the record is %v", s.had(), s.record().State)
		}
		wantFirst(t, s.settled(t, base), http.StatusCreated, "made")
		s.wantHad(t, 2, 1)
	})
}

// TestCommitThenBreak: a failure after the effect was committed does not undo it,
// and the operation does not run again.
func TestCommitThenBreak(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w http.ResponseWriter){
		"500":   func(w http.ResponseWriter) { http.Error(w, "it broke", http.StatusInternalServerError) },
		"panic": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onWays(t, whileItRuns, func(t *testing.T, s *protectedSite) { // otherwise the commit comes after the handler
				act := s.handler(func(w http.ResponseWriter, r *http.Request) error {
					if s.outside {
						return s.effect(r.Context())
					}
					return s.creates(w, r)
				})
				base := serve(t, s.protect(t, options(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					act(w, r)
					end(w)
				})))
				_, _ = sendAlone(t, s.ask(), base)
				again := s.settled(t, base)
				if s.outside {
					wantProblem(t, again, http.StatusConflict, "outcome_unknown")
				} else {
					s.wantMade(t, again)
				}
				s.wantHad(t, 1, 1)
			})
		})
	}
}
