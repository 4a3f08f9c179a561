package server

import (
	"flag"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"time"
)

// config holds the values of the flags.
type config struct {
	addr    string
	metrics string // the address of the metrics; empty: none
	db      string // path of the database file
	delay   time.Duration
}

func parseConfig(args []string) (config, error) {
	var c config
	flags := c.flags(io.Discard)
	if err := flags.Parse(args); err != nil {
		return config{}, err
	}
	if flags.NArg() > 0 {
		return config{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if _, _, err := net.SplitHostPort(c.addr); err != nil {
		return config{}, fmt.Errorf("invalid value %q for -addr: want host:port", c.addr)
	}
	if _, _, err := net.SplitHostPort(c.metrics); c.metrics != "" && err != nil {
		return config{}, fmt.Errorf("invalid value %q for -metrics: want host:port", c.metrics)
	}
	if c.delay < 0 {
		return config{}, fmt.Errorf("invalid value %q for -delay: must not be negative", c.delay)
	}
	path, ok := strings.CutPrefix(c.db, "sqlite:")
	if !ok || path == "" {
		return config{}, fmt.Errorf("invalid value %q for -db: want sqlite:file", c.db)
	}
	var err error
	c.db, err = filepath.Abs(path)
	return c, err
}

func (c *config) flags(usage io.Writer) *flag.FlagSet {
	flags := flag.NewFlagSet("payment", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.StringVar(&c.addr, "addr", "127.0.0.1:8081", "`host:port` to serve on")
	flags.StringVar(&c.metrics, "metrics", "", "`host:port` of another address, which serves metrics to Prometheus at /metrics; default: none")
	flags.StringVar(&c.db, "db", "sqlite:payment.db", "the `database`")
	flags.DurationVar(&c.delay, "delay", 0, "how long at most a request waits before it is worked on, and again before it is answered")
	return flags
}
