package conform

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options configure a run. The zero value is valid.
type Options struct {
	// Only are the IDs of the cases to run. Empty means all.
	Only []string
	// RaceSize is the number of concurrent requests in the case about many
	// requests. Zero means 200.
	RaceSize int
	// QuickRounds is the number of quick rounds at the end of case 30. Zero
	// means 500.
	QuickRounds int
	// Parallel is the number of cases that run at a time. Zero means 8.
	Parallel int
	// CaseTimeout bounds each case. Zero means one minute.
	CaseTimeout time.Duration
	// OnResult is called with the result of each case, one at a time, in the
	// order of the cases. It may be nil.
	OnResult func(Result)
}

func (o Options) withDefaults() Options {
	if o.RaceSize <= 0 {
		o.RaceSize = 200
	}
	if o.QuickRounds <= 0 {
		o.QuickRounds = quickRounds
	}
	if o.Parallel <= 0 {
		o.Parallel = 8
	}
	if o.CaseTimeout <= 0 {
		o.CaseTimeout = time.Minute
	}
	return o
}

// Run tests the server at the first address with the cases of p. Further
// addresses are other processes of the same server. The error is not nil if
// there is no report, because the server cannot be reached or the options are
// invalid.
func Run(ctx context.Context, addresses []string, p *Profile, o Options) (*Report, error) {
	o = o.withDefaults()
	cases, err := selectCases(p.Name, o.Only)
	if err != nil {
		return nil, err
	}
	s := &session{profile: p, raceSize: o.RaceSize, quickRounds: o.QuickRounds}
	for i, address := range addresses {
		srv, err := newServer(address)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			s.server = srv
		} else {
			s.others = append(s.others, srv)
		}
	}
	if _, err := s.server.exchange(ctx, message{method: http.MethodGet, path: "/"}); err != nil {
		return nil, fmt.Errorf("ask %s: %w: %w", addresses[0], ErrUnreachable, err)
	}
	r := &Report{Profile: p.Name, Specification: p.Specification, Results: s.runAll(ctx, cases, o)}
	r.count()
	return r, ctx.Err()
}

func selectCases(profile string, only []string) ([]Case, error) {
	all := Cases(profile)
	for _, id := range only {
		if !slices.ContainsFunc(all, func(c Case) bool { return c.ID == id }) {
			return nil, fmt.Errorf("there is no case %q for the profile %q", id, profile)
		}
	}
	if len(only) == 0 {
		return all, nil
	}
	return slices.DeleteFunc(all, func(c Case) bool { return !slices.Contains(only, c.ID) }), nil
}

// runAll runs the cases that can share the server in parallel, and then the
// other cases one by one. The results are in the order of the cases.
func (s *session) runAll(ctx context.Context, cases []Case, o Options) []Result {
	results, ended, reported := make([]Result, len(cases)), make([]bool, len(cases)), 0
	var mu sync.Mutex
	run := func(i int) {
		r := s.run(ctx, cases[i], o.CaseTimeout)
		mu.Lock()
		defer mu.Unlock()
		results[i], ended[i] = r, true
		for ; o.OnResult != nil && reported < len(cases) && ended[reported]; reported++ {
			o.OnResult(results[reported])
		}
	}
	slots := make(chan struct{}, o.Parallel)
	var shared sync.WaitGroup
	for i, c := range cases {
		if c.alone {
			continue
		}
		slots <- struct{}{}
		shared.Go(func() {
			defer func() { <-slots }()
			run(i)
		})
	}
	shared.Wait()
	for i, c := range cases {
		if c.alone {
			run(i)
		}
	}
	return results
}

// run runs one case in its own goroutine, which the case may end with
// runtime.Goexit.
func (s *session) run(ctx context.Context, c Case, timeout time.Duration) Result {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	t := &caseRun{session: s, ctx: ctx, c: c, verdict: Pass}
	if missing := s.missingPart(c); missing != "" {
		t.verdict, t.detail = NotShown, missing
		return t.result()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.run(t)
	}()
	<-done
	return t.result()
}

// missingPart returns which part of the contract the case needs and the server
// lacks.
func (s *session) missingPart(c Case) string {
	for _, part := range c.needs {
		switch {
		case s.profile.Suite.offers(part):
		case s.profile.Suite.Endpoint != nil:
			return "the server's own endpoint has no way " + purposeOf(part)
		default:
			return "it needs the " + part + " of the fixture contract, which suite.offers does not have"
		}
	}
	return ""
}

// purposeOf describes what a part of the contract does.
func purposeOf(part string) string {
	switch part {
	case offerBarrier:
		return "to hold a request while it runs"
	case offerClock:
		return "to advance the clock"
	case offerCrash:
		return "to be killed and started again"
	case offerStore:
		return "to make its store unavailable"
	case offerPermit:
		return "to revoke a permission"
	default:
		return "to receive instructions for its answers"
	}
}

func (t *caseRun) result() Result {
	detail := t.detail
	if t.verdict == Pass || t.verdict == Info {
		detail = strings.Join(slices.DeleteFunc(append([]string{t.detail}, t.notes...), func(s string) bool { return s == "" }), "; ")
	}
	r := Result{
		ID: t.c.ID, Level: t.c.Level, Source: t.c.Source, Says: t.c.Says, Fields: t.c.Fields,
		Verdict: t.verdict, Detail: detail,
	}
	if t.verdict == Fail || t.verdict == Warn {
		r.Exchanges = t.lastExchanges()
	}
	return r
}
