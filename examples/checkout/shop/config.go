package shop

import (
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"time"
)

// config holds the values of the flags.
type config struct {
	addr     string
	db       string
	amqp     string
	payments *url.URL
	mail     *url.URL // nil: mails are written to the log
	lease    time.Duration
}

func parseConfig(args []string) (config, error) {
	var c config
	flags := c.flags(io.Discard)
	if err := flags.Parse(args); err != nil {
		return config{}, err
	}
	switch _, _, err := net.SplitHostPort(c.addr); {
	case flags.NArg() > 0:
		return config{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case err != nil:
		return config{}, fmt.Errorf("invalid value %q for -addr: want host:port", c.addr)
	case c.db == "":
		return config{}, fmt.Errorf("-db is required: the URL of a PostgreSQL database")
	case c.amqp == "":
		return config{}, fmt.Errorf("-amqp is required: the URL of a RabbitMQ server")
	case c.payments == nil:
		return config{}, fmt.Errorf("-payments is required: the URL of the payment service")
	case c.lease <= 0:
		return config{}, fmt.Errorf("invalid value %s for -lease: must be above zero", c.lease)
	}
	return c, nil
}

func (c *config) flags(usage io.Writer) *flag.FlagSet {
	flags := flag.NewFlagSet("checkout", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.StringVar(&c.addr, "addr", "127.0.0.1:8082", "`host:port` to serve on")
	flags.StringVar(&c.db, "db", "", "the `URL` of a PostgreSQL database")
	flags.StringVar(&c.amqp, "amqp", "", "the `URL` of a RabbitMQ server")
	flags.Func("payments", "the `URL` of the payment service", parseURL(&c.payments))
	flags.Func("mail", "the `URL` that mails are posted to (default: mails are written to the log)", parseURL(&c.mail))
	flags.DurationVar(&c.lease, "lease", 10*time.Second, "how long a killed process blocks the orders that it was working on")
	return flags
}

func parseURL(into **url.URL) func(string) error {
	return func(value string) error {
		u, err := url.Parse(value)
		if err != nil {
			return err
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("want an http or https URL")
		}
		*into = u
		return nil
	}
}
