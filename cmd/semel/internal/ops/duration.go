package ops

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// day is a unit that time.ParseDuration does not support. It is always 24
// hours.
const day = 24 * time.Hour

// durationFlag is a duration flag that also accepts days, as lists print them:
// 1d, 29d23h.
type durationFlag struct{ d *time.Duration }

// durationVar adds a duration flag to f.
func durationVar(f *pflag.FlagSet, d *time.Duration, name string, value time.Duration, usage string) {
	*d = value
	f.Var(durationFlag{d}, name, usage)
}

func (v durationFlag) String() string {
	if v.d == nil {
		return "0s"
	}
	return v.d.String()
}

// Type is the type of the value in the help text.
func (durationFlag) Type() string { return "duration" }

// Set parses the flag's value.
func (v durationFlag) Set(text string) (err error) {
	*v.d, err = parseDuration(text)
	return err
}

// parseDuration parses durations like time.ParseDuration, with an optional
// number of whole days before.
func parseDuration(text string) (time.Duration, error) {
	digits, rest, found := strings.Cut(text, "d")
	if !found {
		return time.ParseDuration(text)
	}
	days, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || days > math.MaxInt64/uint64(day) {
		return 0, fmt.Errorf("invalid duration %q: want whole days and then a duration, such as 1d or 1d12h", text)
	}
	all := time.Duration(days) * day
	if rest == "" {
		return all, nil
	}
	more, err := time.ParseDuration(rest)
	if err != nil || more < 0 || rest[0] == '+' || more > math.MaxInt64-all {
		return 0, fmt.Errorf("invalid duration %q: want whole days and then a duration, such as 1d or 1d12h", text)
	}
	return all + more, nil
}
