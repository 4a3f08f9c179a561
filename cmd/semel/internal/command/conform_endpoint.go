package command

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/semelgo/semel/cmd/semel/internal/conform"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/cmd/semel/internal/terminal"
)

// endpointFlags name an endpoint without a profile file.
type endpointFlags struct {
	target  string
	body    string
	media   string
	count   string
	headers []string
	others  []string
}

// register adds the flags to flags, with the values of f as defaults.
func (f *endpointFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.target, "endpoint", f.target, "`method and path` of requests, for example 'POST /orders'")
	flags.StringVar(&f.body, "body", f.body, "the `body` of requests, with {{op}} and {{n}}; @FILE reads it from a file")
	flags.StringVar(&f.media, "content-type", "", "the body's media `type` (default application/json)")
	flags.StringVar(&f.count, "count", f.count, "`path` where the effects of {{op}} are counted, and after a # the JSON pointer to the number")
	flags.StringArrayVar(&f.headers, "header", nil, "a `header` line that identifies the user; may be repeated, ${NAME} is an environment variable")
	flags.StringArrayVar(&f.others, "other-header", nil, "a `header` line of another user, for the cases about two users")
}

// named reports whether the flags name an endpoint.
func (f *endpointFlags) named() bool { return f.target != "" }

// apply writes the flags' values into p.
func (f *endpointFlags) apply(p *conform.Profile) error {
	if !f.named() {
		if f.body != "" || f.count != "" || f.media != "" || len(f.headers)+len(f.others) > 0 {
			return errors.New("--body, --content-type, --count, --header and --other-header need --endpoint")
		}
		return nil
	}
	body := f.body
	if name, found := strings.CutPrefix(f.body, "@"); found {
		text, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read --body: %w", err)
		}
		body = string(text)
	}
	e, err := conform.ParseEndpoint(f.target, body, f.count)
	if err != nil {
		return err
	}
	e.ContentType = f.media
	p.Suite = conform.Suite{Endpoint: e}
	return f.principals(&p.Suite)
}

func (f *endpointFlags) principals(s *conform.Suite) error {
	if len(f.others) > 0 && len(f.headers) == 0 {
		return errors.New("--other-header needs --header, which identifies the first user")
	}
	for _, lines := range [][]string{f.headers, f.others} {
		if len(lines) == 0 {
			continue
		}
		p, err := conform.ParsePrincipal(lines)
		if err != nil {
			return err
		}
		s.Principals = append(s.Principals, p)
	}
	return nil
}

const aboutConformInit = `init writes a profile file: the endpoint that the flags name, and every member of the
profile with its usual value. Correct the members that your server handles otherwise, and
pass the file to "semel conform --profile FILE URL". A member that you remove is observed
and reported.`

func newConformInitCommand() *cobra.Command {
	f := endpointFlags{target: "POST /orders", body: `{"item":"{{op}}","amount":{{n}}}`, count: "/orders?item={{op}}#/total"}
	c := &cobra.Command{
		Use:   "init",
		Short: "Write a profile file for an endpoint",
		Long:  aboutConformInit,
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			p := conform.DefaultProfile()
			if err := f.apply(&p); err != nil {
				return exit.Usagef("conform init: %w", err)
			}
			return terminal.WriteJSON(c, p)
		},
	}
	f.register(c.Flags())
	return c
}
