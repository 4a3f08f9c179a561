package conform_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
)

// front wraps next with the flaws that act before the server's own layer.
func (s *fakeServer) front(next http.Handler) http.Handler {
	switch {
	case s.flaws[replaysGets]:
		return s.cached(next)
	case s.flaws[refusesGets]:
		return s.strict(next)
	case s.flaws[recordsGets]:
		return s.recorded(next)
	case s.flaws[revealsByHeader], s.flaws[revealsByNoHeader], s.flaws[revealsByCode]:
		return s.telling(next)
	case s.flaws[opensSessions]:
		return s.greeting(next)
	default:
		return next
	}
}

// first reports whether word is seen for the first time.
func (s *fakeServer) first(word string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen[word]
	if s.seen == nil {
		s.seen = make(map[string]bool)
	}
	s.seen[word] = true
	return !seen
}

// lookedUpWith returns the key of a request that reads the counter; empty for
// another request.
func lookedUpWith(r *http.Request) string {
	if r.Method != http.MethodGet {
		return ""
	}
	return r.Header.Get("Idempotency-Key")
}

// cached replays the first answer for reads with the same key.
func (s *fakeServer) cached(next http.Handler) http.Handler {
	answers := make(map[string]*httptest.ResponseRecorder) // guarded by s.cache
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := lookedUpWith(r)
		if key == "" {
			next.ServeHTTP(w, r)
			return
		}
		s.cache.Lock()
		defer s.cache.Unlock()
		got := answers[key]
		if got == nil {
			got = httptest.NewRecorder()
			next.ServeHTTP(got, r)
			answers[key] = got
		}
		w.WriteHeader(got.Code)
		_, _ = w.Write(got.Body.Bytes())
	})
}

// strict refuses reads with a malformed key.
func (s *fakeServer) strict(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, code := s.keyOf(r); r.Method == http.MethodGet && code == "key_malformed" {
			s.refuse(w, code)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// recorded refuses effects with a key that was used for a read.
func (s *fakeServer) recorded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := lookedUpWith(r)
		s.mu.Lock()
		used := r.Method != http.MethodGet && s.seen["get "+r.Header.Get("Idempotency-Key")]
		s.mu.Unlock()
		switch {
		case used:
			s.refuse(w, "key_reused")
			return
		case key != "":
			s.first("get " + key)
		}
		next.ServeHTTP(w, r)
	})
}

// telling reveals to B which keys A has used.
func (s *fakeServer) telling(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stranger := strings.HasSuffix(r.Header.Get("Authorization"), " b")
		guessed := !s.first(r.Header.Get("Idempotency-Key")) && stranger
		switch {
		case s.flaws[revealsByCode] && guessed:
			problem(w, http.StatusForbidden, "not_yours")
			return
		case s.flaws[revealsByCode] && stranger:
			problem(w, http.StatusForbidden, "forbidden")
			return
		case s.flaws[revealsByHeader] && guessed:
			w.Header().Set("X-Known", "yes")
		case s.flaws[revealsByNoHeader] && !guessed:
			w.Header().Set("X-New", "yes")
		}
		next.ServeHTTP(w, r)
	})
}

// greeting sets a cookie for new clients.
func (s *fakeServer) greeting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.first(r.Header.Get("Authorization")) {
			w.Header().Set("Set-Cookie", "session=new")
		}
		next.ServeHTTP(w, r)
	})
}
