package server

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/semelgo/semel/examples/chat/accounts"
	"github.com/semelgo/semel/store"
)

// The modes in which an operation runs. Flag -records selects modeApart.
const (
	modeInline = "inline"
	modeLeased = "leased"
	modeApart  = "records"
)

// config holds the values of the flags and the environment.
type config struct {
	addr    string
	metrics string // the address of the metrics; empty: none
	db      string // the chat's own database: a file's path, or a URL of PostgreSQL or MariaDB
	records string // the records' database; equal to db unless mode is modeApart
	mode    string
	lease   time.Duration
	wait    time.Duration
	// payments is the URL of the payment service. Nil: boosts are off.
	payments *url.URL
	// amqp is the URL of the broker to import messages from. Empty: no import.
	amqp      string
	amqpQueue string
	// bus carries changes between servers: auto, local, or a URL. Servers with the same busName
	// hear one another.
	bus, busName string
	// retention is how long a finished record is kept.
	retention time.Duration
	// sweep is the interval of purging old records and of sweeping the records of
	// dead servers.
	sweep time.Duration
	// serveOnly turns background work off, but for the streams: other servers do it.
	serveOnly bool
	// mayLose accepts databases that can lose committed records.
	mayLose bool
	// argon2 is the cost of hashing a password.
	argon2 accounts.Cost
	// signUps and logIns are limits of requests; see the flags. Zero: no limit.
	signUps, logIns int
	// proxies are trusted to name the client in X-Forwarded-For.
	proxies    []netip.Prefix
	sessionAge time.Duration // how long after its log-in a session ends; zero: never
	command    *command      // nil: serve
}

// errHelp is the result of -h.
var errHelp = flag.ErrHelp

// parseConfig reads the flags. A flag that is not given takes its value from the
// environment.
func parseConfig(args []string, getenv func(string) string) (config, error) {
	var c config
	flags := c.flags(io.Discard)
	var bad error
	flags.VisitAll(func(f *flag.Flag) {
		name := envName(f.Name)
		value := getenv(name)
		if value == "" || bad != nil {
			return
		}
		if err := f.Value.Set(value); err != nil {
			bad = fmt.Errorf("invalid value %q for %s: %w", value, name, err)
		}
	})
	if bad != nil {
		return config{}, bad
	}
	if err := flags.Parse(args); err != nil {
		return config{}, err
	}
	var err error
	if c.command, err = parseCommand(flags.Args()); err != nil {
		return config{}, err
	}
	return c.checked()
}

func (c *config) flags(usage io.Writer) *flag.FlagSet {
	flags := flag.NewFlagSet("chat", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.StringVar(&c.addr, "addr", "127.0.0.1:8080", "`host:port` to serve on")
	flags.StringVar(&c.metrics, "metrics", "", "`host:port` of another address, which serves metrics to Prometheus at /metrics; default: none")
	flags.StringVar(&c.db, "db", "sqlite:chat.db", "the chat's `database`: sqlite:file, postgres://user@host/name or mysql://user@host:port/name")
	flags.StringVar(&c.mode, "mode", modeInline, "inline: one transaction; leased: the claim is committed first")
	flags.DurationVar(&c.lease, "lease", 2*time.Second, "how long a leader may be silent before others may take over; in mode inline, PostgreSQL and MariaDB enforce this limit, and SQLite does not")
	flags.DurationVar(&c.wait, "wait", 0, "how long a retry waits for the outcome of a running request before it gets 409")
	flags.Func("payments", "`URL` of a payment service, with the name of a merchant; without it groups cannot be boosted", c.setPayments)
	flags.StringVar(&c.amqp, "amqp", "", "`URL` of a RabbitMQ to import messages from: amqp://user:password@host/vhost")
	flags.StringVar(&c.amqpQueue, "amqp-queue", "chat.import", "`name` of the queue to import from")
	flags.StringVar(&c.bus, "bus", busAuto, "how changes reach the clients of other servers: amqp://… (RabbitMQ), postgres://… (NOTIFY; not through PgBouncer), local (one server only), or auto: NOTIFY of -db if it is PostgreSQL, else local")
	flags.StringVar(&c.busName, "bus-name", "", "`name` of the exchange (RabbitMQ) or channel (PostgreSQL) of -bus; default: chat_ and the random ID of the database, so that only its servers hear one another; a copy of a database has the same ID and needs a name")
	flags.DurationVar(&c.retention, "retention", retention, "how long a finished record is kept, and retries of its key receive its outcome")
	flags.DurationVar(&c.sweep, "sweep", time.Minute, "how often to purge old records and to release the records of dead servers; tasks are released at least once per lease")
	flags.BoolVar(&c.serveOnly, "serve-only", false, "answer requests only, and leave publishing changes, tasks, the import and sweeping to other servers")
	flags.BoolVar(&c.mayLose, "may-lose", false, "accept a database that may lose records when its server is killed or the power fails; an operation whose record is lost may run again")
	c.argon2 = accounts.DefaultCost()
	flags.Var(&c.argon2, "argon2", "`cost` of hashing a new password by argon2id: KiB of memory, passes, threads")
	flags.IntVar(&c.signUps, "sign-ups", 30, "how many `times` an hour an address may sign up; 0: no limit")
	flags.IntVar(&c.logIns, "log-ins", 10, "how many `times` a minute an address may log in with one name, and ten times as often with all; 0: no limit")
	flags.Func("trusted-proxies", "`networks` of trusted reverse proxies, such as 10.0.0.0/8,::1/128; -sign-ups and -log-ins then count the client's address in X-Forwarded-For; default: none", c.setProxies)
	flags.DurationVar(&c.sessionAge, "session-age", 90*24*time.Hour, "how long after its log-in a session ends, and its user must log in again; 0: never")
	flags.StringVar(&c.records, "records", "", "another `database` for the records; -mode does not apply then")
	return flags
}

// survive is the worst failure that the records must survive.
func (c *config) survive() store.Failure {
	if c.mayLose {
		return store.NoFailure
	}
	return store.PowerLoss
}

func (c *config) setPayments(value string) error {
	at, err := url.Parse(value)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.RawQuery != "" || at.Fragment != "" {
		return errors.New("want http://merchant@host:port")
	}
	c.payments = at
	return nil
}

func (c *config) setProxies(value string) error {
	c.proxies = nil
	for text := range strings.SplitSeq(value, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		proxy, err := netip.ParsePrefix(text)
		if err != nil {
			return errors.New("want networks with commas, such as 10.0.0.0/8,::1/128")
		}
		c.proxies = append(c.proxies, proxy)
	}
	return nil
}

// envName returns the environment variable of a flag.
func envName(flag string) string {
	return "CHAT_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// usage prints the flags and commands.
func usage(w io.Writer) {
	_, _ = fmt.Fprintln(w, "usage: chat [flags]                     serve"+
		"\n       chat [flags] doubts              list the records in doubt, whose outcome is unknown"+
		"\n       chat [flags] resolve ID pending|failed|succeeded REASON"+
		"\n       chat [flags] failed              list the tasks and imported messages that were given up"+
		"\n       chat [flags] redrive ID REASON   retry one of them"+
		"\n       chat load -servers URL,URL       send messages to servers, and verify the result; see chat load -h"+
		"\n\nEach flag can also be set by its variable: -addr by CHAT_ADDR and so on.")
	new(config).flags(w).PrintDefaults()
}

// checked validates c and returns it with absolute database paths.
func (c config) checked() (config, error) {
	if _, _, err := net.SplitHostPort(c.addr); err != nil {
		return config{}, fmt.Errorf("invalid value %q for -addr: want host:port", c.addr)
	}
	if _, _, err := net.SplitHostPort(c.metrics); c.metrics != "" && err != nil {
		return config{}, fmt.Errorf("invalid value %q for -metrics: want host:port", c.metrics)
	}
	if c.mode != modeInline && c.mode != modeLeased {
		return config{}, fmt.Errorf("invalid value %q for -mode: want inline or leased", c.mode)
	}
	if c.lease <= 0 {
		return config{}, fmt.Errorf("invalid value %q for -lease: must be above zero", c.lease)
	}
	if c.wait < 0 {
		return config{}, fmt.Errorf("invalid value %q for -wait: must not be negative", c.wait)
	}
	if c.retention <= 0 {
		return config{}, fmt.Errorf("invalid value %q for -retention: must be above zero", c.retention)
	}
	if c.signUps < 0 {
		return config{}, fmt.Errorf("invalid value %d for -sign-ups: must not be negative", c.signUps)
	}
	if c.logIns < 0 {
		return config{}, fmt.Errorf("invalid value %d for -log-ins: must not be negative", c.logIns)
	}
	if c.sessionAge < 0 {
		return config{}, fmt.Errorf("invalid value %q for -session-age: must not be negative", c.sessionAge)
	}
	if c.sweep <= 0 {
		return config{}, fmt.Errorf("invalid value %q for -sweep: must be above zero", c.sweep)
	}
	if err := checkBus(c.bus, c.busName); err != nil {
		return config{}, err
	}
	if err := c.checkImport(); err != nil {
		return config{}, err
	}
	var err error
	if c.db, err = parseDatabase("-db", c.db); err != nil {
		return config{}, err
	}
	if c.records == "" {
		c.records = c.db
		return c, nil
	}
	c.mode = modeApart
	if c.records, err = parseDatabase("-records", c.records); err != nil {
		return config{}, err
	}
	if c.records == c.db {
		return config{}, errors.New("-records must be another database than -db; leave it out to keep the records in -db")
	}
	return c, nil
}

// checkImport validates the flags of the import. Its errors contain no password.
func (c *config) checkImport() error {
	if c.amqp == "" {
		return nil
	}
	if _, err := amqp091.ParseURI(c.amqp); err != nil {
		return errors.New("invalid value for -amqp: want amqp://user:password@host:port/vhost")
	}
	if c.amqpQueue == "" || len(c.amqpQueue) > maxQueueName {
		return fmt.Errorf("invalid value %q for -amqp-queue: want 1 to %d bytes", c.amqpQueue, maxQueueName)
	}
	return nil
}

// parseDatabase returns the absolute path of sqlite:path, and a URL of PostgreSQL or
// MariaDB unchanged.
func parseDatabase(name, value string) (string, error) {
	if isPostgres(value) {
		if _, err := pgxpool.ParseConfig(value); err != nil {
			return "", fmt.Errorf("invalid value for %s: %w", name, err) // err contains no password
		}
		return value, nil
	}
	if isMySQL(value) {
		if _, err := parseMySQL(value); err != nil {
			return "", fmt.Errorf("invalid value for %s: %w", name, err)
		}
		return value, nil
	}
	path, ok := strings.CutPrefix(value, "sqlite:")
	if !ok || path == "" {
		return "", fmt.Errorf("invalid value %q for %s: want sqlite:file, postgres://… or mysql://…", value, name)
	}
	return filepath.Abs(path)
}
