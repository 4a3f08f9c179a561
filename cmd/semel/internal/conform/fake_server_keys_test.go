package conform_test

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/semelgo/semel"
)

type demand struct {
	principal   string
	key         string
	fingerprint string
	Op          string
	Script      struct {
		DelayMS   int `json:"delay_ms"`
		Status    int
		Headers   map[string]string
		BodyBytes int `json:"body_bytes"`
		Fail      string
		Once      bool
	}
}

// serve handles one request for an effect.
func (s *fakeServer) serve(w http.ResponseWriter, r *http.Request) {
	d, status := s.demanded(r)
	if status != 0 {
		w.WriteHeader(status)
		return
	}
	key, code := s.keyOf(r)
	switch {
	case s.flaws[looksUpFirst] && s.isDown():
		s.refuse(w, "unavailable")
		return
	case code == "key_missing" && s.flaws[runsWithoutKey], s.flaws[ignoresKeys]:
		s.write(w, s.perform(r.Context(), d), false)
		return
	case code != "":
		s.refuse(w, code)
		return
	}
	d.key = s.scoped(d, key, r)
	rec, leads, code := s.claim(d, key)
	waited := false
	for s.flaws[waits] && code == "in_progress" {
		waited = true
		select {
		case <-rec.ended:
		case <-rec.life:
		}
		rec, leads, code = s.claim(d, key)
	}
	switch {
	case code != "":
		s.refuse(w, code)
	case leads:
		s.write(w, s.lead(r, d, rec), false)
	default:
		rec.unmarked = waited && s.flaws[waitersUnmarked]
		s.replay(w, d, *rec)
	}
}

func (s *fakeServer) isDown() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.down && !s.flaws[runsWhileDown]
}

// demanded parses the request, or returns the status of the refusal.
func (s *fakeServer) demanded(r *http.Request) (d demand, status int) {
	d.principal = map[string]string{"Bearer a": "A", "Bearer b": "A:x"}[r.Header.Get("Authorization")]
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	switch {
	case d.principal == "":
		return d, http.StatusUnauthorized
	case !strings.HasSuffix(media, "json") || r.Header.Get("Content-Encoding") != "":
		return d, http.StatusUnsupportedMediaType
	case len(body) == 1<<20:
		return d, http.StatusRequestEntityTooLarge
	case err != nil || json.Unmarshal(body, &d) != nil:
		return d, http.StatusBadRequest
	}
	d.fingerprint = strings.Join([]string{r.Method, r.URL.RequestURI(), media, string(body)}, "\n")
	if s.flaws[fingerprintsByValue] {
		d.fingerprint = strings.Join([]string{r.Method, r.URL.RequestURI(), media, string(compact(body))}, "\n")
	}
	if s.flaws[fingerprintsBodyOnly] {
		d.fingerprint = string(body)
	}
	return d, 0
}

func compact(body []byte) []byte {
	var v any
	_ = json.Unmarshal(body, &v)
	text, _ := json.Marshal(v)
	return text
}

// keyOf returns the key, or the code of its error.
func (s *fakeServer) keyOf(r *http.Request) (key, code string) {
	lines := r.Header.Values("Idempotency-Key")
	if len(lines) == 0 {
		return "", "key_missing"
	}
	if s.flaws[takesFirstLine] {
		lines = lines[:1]
	}
	if s.flaws[rawKeys] {
		if len(lines) != 1 || !visible("x"+lines[0]) || lines[0] == "" || len(lines[0]) > 255 {
			return "", "key_malformed"
		}
		return lines[0], ""
	}
	item, err := httpsfv.UnmarshalItem(lines)
	key, isString := item.Value.(string)
	if isString && s.flaws[parametersCount] && item.Params != nil && len(item.Params.Names()) > 0 {
		key = lines[0]
	}
	if !isString && s.flaws[takesUnquoted] && len(lines) == 1 && visible(lines[0]) {
		key, err, isString = lines[0], nil, true
	}
	if s.flaws[cutsOff] {
		key = key[:min(len(key), 255)]
	}
	if s.flaws[foldsCase] {
		key = strings.ToLower(key)
	}
	if s.flaws[dropsSpaces] {
		key = strings.ReplaceAll(key, " ", "")
	}
	empty := key == "" && !s.flaws[takesEmpty]
	if err != nil || !isString || empty || len(key) > 255 {
		return "", "key_malformed"
	}
	return key, ""
}

func visible(s string) bool {
	return s != "" && s[0] != '"' && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

// scoped returns the key of the record.
func (s *fakeServer) scoped(d demand, key string, r *http.Request) string {
	parts := []string{d.principal, r.Method, key}
	if s.flaws[sharesPrincipals] {
		parts[0] = ""
	}
	if s.flaws[sharesRoutes] {
		parts[1] = ""
	}
	separator := "\x00"
	if s.flaws[joinsWithColon] {
		parts, separator = []string{r.Method, d.principal, key}, ":"
	}
	return strings.Join(parts, separator)
}

// claim returns the record for the answer, or the new record of a leader, or
// the code of a refusal.
func (s *fakeServer) claim(d demand, key string) (rec *record, leads bool, code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down && !s.flaws[runsWhileDown] {
		return nil, false, "unavailable"
	}
	rec = s.records[d.key]
	retention := time.Duration(s.profile.Retention) * time.Second
	if s.flaws[forgetsEarly] {
		retention /= 2
	}
	if rec != nil && (!rec.running && s.ahead >= rec.at+retention || rec.running && rec.life != s.life) {
		rec = nil
	}
	if at, ok := semel.UUIDv7Time(key); rec == nil && ok && !s.flaws[runsOldKeys] {
		if age := time.Since(at) + s.ahead; age > retention || age < -time.Hour {
			return nil, false, "key_expired"
		}
	}
	switch {
	case rec == nil || s.flaws[runsMismatch] && rec.fingerprint != d.fingerprint:
		rec = &record{fingerprint: d.fingerprint, running: true, life: s.life, ended: make(chan struct{})}
		s.records[d.key] = rec
		return rec, true, ""
	case rec.fingerprint != d.fingerprint && s.flaws[storesMismatch]:
		rec.answer = stored{status: http.StatusUnprocessableEntity}
		return nil, false, "key_reused"
	case rec.fingerprint != d.fingerprint && !s.flaws[noFingerprint]:
		return nil, false, s.reused(rec.fingerprint, d.fingerprint)
	case rec.running && s.flaws[noLock]:
		return rec, true, ""
	case rec.running:
		seen := *rec
		return &seen, false, "in_progress"
	case s.denied[d.Op] && !s.flaws[replaysWithoutPermission]:
		return nil, false, "forbidden"
	default:
		seen := *rec
		return &seen, false, ""
	}
}

// lead runs the operation, and stores its answer in rec or removes rec.
func (s *fakeServer) lead(r *http.Request, d demand, rec *record) (answer stored) {
	keep := false
	defer func() { // also after a panic of the operation
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.flaws[noLock] { // otherwise several requests lead
			close(rec.ended)
		}
		switch {
		case s.records[d.key] != rec:
		case keep && !s.down:
			*rec = record{fingerprint: d.fingerprint, at: s.ahead, answer: answer}
		default:
			delete(s.records, d.key)
		}
	}()
	answer = s.perform(r.Context(), d)
	keep = answer.status < 500 && !slices.Contains(s.profile.NeverStored, answer.status)
	if s.flaws[storesEverything] || s.flaws[storesServerErrors] && answer.status >= 500 {
		keep = true
	}
	if s.flaws[forgetsAfterDisconnect] && r.Context().Err() != nil {
		keep = false
	}
	return answer
}

// replay answers from the record.
func (s *fakeServer) replay(w http.ResponseWriter, d demand, rec record) {
	answer := rec.answer
	answer.header = answer.header.Clone()
	if !s.flaws[replaysAllHeaders] {
		for _, name := range []string{"Set-Cookie", "Date", "X-Ratelimit-Remaining", "Retry-After", "Www-Authenticate", "Keep-Alive"} {
			if name != "Date" || !s.flaws[replaysDate] {
				answer.header.Del(name)
			}
		}
	}
	if s.flaws[dropsHeaders] {
		answer.header = http.Header{"Content-Type": {"application/json"}}
	}
	if s.flaws[replaysAs200] && answer.status < 300 {
		answer.status = http.StatusOK
	}
	if int64(len(answer.body)) > s.profile.ReplayMaxBytes {
		if s.flaws[runsLargeAgain] {
			s.write(w, s.perform(context.Background(), d), false)
			return
		}
		s.refuse(w, "result_unavailable")
		return
	}
	s.write(w, answer, !rec.unmarked)
}

func (s *fakeServer) write(w http.ResponseWriter, a stored, replayed bool) {
	maps.Copy(w.Header(), a.header)
	if s.flaws[sendsNoDate] {
		w.Header()["Date"] = nil
	}
	if replayed && !s.flaws[noMarker] || s.flaws[marksEverything] {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}
