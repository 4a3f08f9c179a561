package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel/cmd/semel/internal/conform"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/cmd/semel/internal/terminal"
)

const aboutConform = `conform tests a server against draft-ietf-httpapi-idempotency-key-header-07, and,
where the draft is silent, against the server's own profile.

Name an endpoint of the server and a body for it:

  semel conform --endpoint 'POST /orders' --body '{"item":"{{op}}","amount":{{n}}}' \
    --count '/orders?item={{op}}#/total' --header 'Authorization: Bearer ...' http://127.0.0.1:8080

{{op}} is replaced by a name that only one case uses, {{n}} by a number that makes the
request a different one. --count names where the effects are counted: a path, and after
the # a JSON pointer to a number or to an array. Without it a second run is detected only
if its answer differs from the first one, for example by another id.

Without --endpoint the server implements the fixture contract (docs/conformance), or the
profile file names an endpoint. Further URLs are other processes of the same server. The
server's own profile is read from ` + conform.WellKnown + `;
--profile adds to it or replaces parts of it. Behavior that neither declares is observed
and reported; it fails only if it is unsafe. "semel conform init" writes a profile file.

Exit codes: 0 every case that could be tested passes; 1 a MUST, a security practice, or
a promise of the profile does not hold; 2 the command line or the profile is invalid;
3 the server cannot be reached; 6 only a SHOULD does not hold. Cases that cannot be
tested do not affect the code.`

// conformFlags are the flags of conform.
type conformFlags struct {
	profile     string
	endpoint    endpointFlags
	only        []string
	verbose     bool
	raceSize    int
	parallel    int
	caseTimeout time.Duration
}

// NewConformCommand returns the command that tests a server against the draft.
func NewConformCommand() *cobra.Command {
	var f conformFlags
	c := &cobra.Command{
		Use:   "conform URL [URL...]",
		Short: "Test an HTTP server against the Idempotency-Key draft and its own profile",
		Long:  aboutConform,
		Args:  cobra.MinimumNArgs(1),
		RunE:  f.run,
	}
	c.AddCommand(newConformInitCommand())
	flags := c.Flags()
	f.endpoint.register(flags)
	flags.StringVar(&f.profile, "profile", "", "profile `file`, or strict, lenient or stripe (default: the server's own)")
	flags.StringSliceVar(&f.only, "only", nil, "run only these `cases`, for example 14,26,S3")
	flags.BoolVar(&f.verbose, "verbose", false, "also print the observations of passed cases, and what each case depends on")
	flags.IntVar(&f.raceSize, "storm", 200, "number of concurrent `requests` in the race")
	flags.IntVar(&f.parallel, "parallel", 8, "number of `cases` at a time")
	flags.DurationVar(&f.caseTimeout, "patience", time.Minute, "the time limit of each case")
	return c
}

func (f *conformFlags) run(c *cobra.Command, urls []string) error {
	p, err := f.load(c, urls[0])
	if err != nil {
		return withCode(err)
	}
	text := !terminal.WantsJSON(c)
	o := conform.Options{Only: f.only, RaceSize: f.raceSize, Parallel: f.parallel, CaseTimeout: f.caseTimeout}
	if text {
		o.OnResult = func(r conform.Result) { r.WriteText(c.OutOrStdout(), f.verbose) }
	}
	report, err := conform.Run(c.Context(), urls, p, o)
	if err != nil {
		return withCode(err)
	}
	if text {
		report.Summary(c.OutOrStdout())
	} else if err := terminal.WriteJSON(c, report); err != nil {
		return err
	}
	if code := codeOf(report); code != exit.OK {
		return &exit.Error{Code: code}
	}
	return nil
}

func (f *conformFlags) load(c *cobra.Command, url string) (*conform.Profile, error) {
	if f.raceSize < 1 || f.parallel < 1 || f.caseTimeout <= 0 {
		return nil, errors.New("--storm, --parallel and --patience must be above zero")
	}
	p, err := conform.FetchProfile(c.Context(), url)
	if errors.Is(err, conform.ErrUnpublished) && (f.profile != "" || f.endpoint.named()) {
		undeclared := conform.UndeclaredProfile()
		p, err = &undeclared, nil
	}
	if err == nil && f.profile != "" {
		p, err = conform.LoadProfile(f.profile, *p)
	}
	if err != nil {
		return nil, err
	}
	return p, f.endpoint.apply(p)
}

// withCode gives err the code it ends the program with.
func withCode(err error) error {
	switch {
	case errors.Is(err, conform.ErrUnreachable):
		return &exit.Error{Code: exit.Unavailable, Err: err}
	case errors.Is(err, context.Canceled):
		return &exit.Error{Code: exit.Failed, Err: errors.New("conform: interrupted")}
	case errors.Is(err, conform.ErrUnpublished):
		return exit.Usagef("conform: %w; name an endpoint with --endpoint and --body, or a profile with --profile", err)
	}
	return exit.Usagef("%w", fmt.Errorf("conform: %w", err))
}

func codeOf(r *conform.Report) int {
	switch {
	case r.Counts[conform.Fail] > 0:
		return exit.Failed
	case r.Counts[conform.Warn] > 0:
		return exit.Warned
	default:
		return exit.OK
	}
}
