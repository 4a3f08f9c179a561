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

// Options says how a server is held to the cases. The zero value is good.
type Options struct {
	// Only are the IDs of the cases to run. Empty: all.
	Only []string
	// RaceSize is how many ask at once in the case about many. Zero: 200.
	RaceSize int
	// QuickRounds is how many rounds of a few requests over open connections that case 30
	// ends with. Zero: 500.
	QuickRounds int
	// Parallel is how many cases run at a time. Zero: 8.
	Parallel int
	// CaseTimeout bounds each case. Zero: one minute.
	CaseTimeout time.Duration
	// OnResult is called with the result of each case, one at a time, in the order of the
	// cases. Nil: it is not called.
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

// Run holds the server at the first of addresses to the cases of p. Further
// addresses are of other processes of the same server. It returns an error when
// there is nothing to report: the server cannot be reached, or the options are
// wrong.
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

// runAll runs the cases that may share the server with others, and then the
// others one by one. The results are in the order of the cases.
func (s *session) runAll(ctx context.Context, cases []Case, o Options) []Result {
	results, ended, told := make([]Result, len(cases)), make([]bool, len(cases)), 0
	var telling sync.Mutex
	run := func(i int) {
		r := s.run(ctx, cases[i], o.CaseTimeout)
		telling.Lock()
		defer telling.Unlock()
		results[i], ended[i] = r, true
		for ; o.OnResult != nil && told < len(cases) && ended[told]; told++ {
			o.OnResult(results[told])
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

// run runs one case in a goroutine of its own, which the case may end.
func (s *session) run(ctx context.Context, c Case, patience time.Duration) Result {
	ctx, cancel := context.WithTimeout(ctx, patience)
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

// missingPart says which part of the contract a case needs that is not there.
func (s *session) missingPart(c Case) string {
	for _, part := range c.needs {
		switch {
		case s.profile.Suite.offers(part):
		case s.profile.Suite.Endpoint != nil:
			return "an endpoint of its own has no way " + purposeOf(part)
		default:
			return "it needs the " + part + " of the fixture contract, which suite.offers does not have"
		}
	}
	return ""
}

// purposeOf says what a part of the contract is for.
func purposeOf(part string) string {
	switch part {
	case offerBarrier:
		return "to hold a request while it runs"
	case offerClock:
		return "to let time go by"
	case offerCrash:
		return "to be killed and started again"
	case offerStore:
		return "to lose its store"
	case offerPermit:
		return "to take a permission back"
	default:
		return "to be told what to do and to answer"
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
