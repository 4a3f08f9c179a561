package conform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// session is a server under test.
type session struct {
	server      server
	others      []server // further addresses of the same server
	profile     *Profile
	raceSize    int // concurrent requests of a race
	quickRounds int // number of quick rounds
}

// WellKnown is the path of a server's own profile, below its base.
const WellKnown = "/.well-known/idempotency"

// ErrUnpublished is the error for a server that publishes no profile.
var ErrUnpublished = errors.New("the server publishes no profile")

// FetchProfile returns the profile that the server at base publishes. Without a
// profile the error is ErrUnpublished.
func FetchProfile(ctx context.Context, base string) (*Profile, error) {
	srv, err := newServer(base)
	if err != nil {
		return nil, err
	}
	a, err := srv.exchange(ctx, message{method: http.MethodGet, path: WellKnown})
	if err != nil {
		return nil, fmt.Errorf("ask %s%s: %w", base, WellKnown, errors.Join(ErrUnreachable, err))
	}
	if a.status != http.StatusOK {
		return nil, fmt.Errorf("%s%s answers %d: %w", base, WellKnown, a.status, ErrUnpublished)
	}
	if media, _, _ := mime.ParseMediaType(a.header.Get("Content-Type")); media == "text/html" {
		// A single-page application answers every path with the same page.
		return nil, fmt.Errorf("%s%s is a page for people: %w", base, WellKnown, ErrUnpublished)
	}
	p, err := parseProfile(a.body, UndeclaredProfile(), false)
	if err != nil {
		return nil, fmt.Errorf("read profile at %s%s: %w", base, WellKnown, err)
	}
	return p, nil
}

// ErrUnreachable is the error for a server that does not answer, so that
// nothing could be tested.
var ErrUnreachable = errors.New("the server cannot be reached")

// effects counts the effects of op, over all principals; if each principal sees
// only its own effects, those of principal.
func (s *session) effects(ctx context.Context, op string) (int, error) {
	principals := []string{principalA}
	if s.profile.Suite.counter().PerPrincipal && s.profile.Suite.principals() > 1 {
		principals = append(principals, principalB)
	}
	sum := 0
	for _, p := range principals {
		a, err := s.lookUp(ctx, op, p)
		if err != nil {
			return 0, fmt.Errorf("ask counter: %w", err)
		}
		n, err := s.countIn(a, op)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// lookUp reads the counter of op.
func (s *session) lookUp(ctx context.Context, op, principal string, more ...line) (*answer, error) {
	path := expand(s.profile.Suite.counter().URL, request{op: op})
	return s.server.exchange(ctx, message{method: http.MethodGet, path: path, lines: append(s.principalLines(principal), more...)})
}

// countIn returns the number of op's effects from an answer of the counter.
func (s *session) countIn(a *answer, op string) (int, error) {
	c := s.profile.Suite.counter()
	if a.status != http.StatusOK {
		return 0, fmt.Errorf("the counter answers %d", a.status)
	}
	var v any
	if err := json.Unmarshal(a.body, &v); err != nil {
		return 0, fmt.Errorf("read counter: %w", err)
	}
	switch found := valueAt(v, c.Pointer).(type) {
	case float64:
		return int(found), nil
	case []any:
		return matching(found, c.Match, op), nil
	default:
		return 0, fmt.Errorf("the counter has neither a number nor an array at %q", c.Pointer)
	}
}

func matching(elements []any, pointer, op string) int {
	n := 0
	for _, e := range elements {
		text, ok := valueAt(e, pointer).(string)
		if pointer == "" || ok && strings.Contains(text, op) {
			n++
		}
	}
	return n
}

// valueAt returns the value in v at the JSON pointer; nil if there is none.
func valueAt(v any, pointer string) any {
	for token := range jsontext.Pointer(pointer).Tokens() {
		switch in := v.(type) {
		case map[string]any:
			v = in[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

// control uses a part of the fixture contract that is not under test.
func (s *session) control(ctx context.Context, path string, body any) (*answer, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	lines := append(s.principalLines(principalA), line{"Content-Type", "application/json"})
	m := message{method: http.MethodPost, path: path, lines: lines, body: text}
	a, err := s.server.exchange(ctx, m)
	if err != nil {
		return nil, fmt.Errorf("POST %s: %w", path, err)
	}
	if a.status != http.StatusOK {
		return nil, fmt.Errorf("POST %s answers %d, want 200: %.100s", path, a.status, a.body)
	}
	return a, nil
}
