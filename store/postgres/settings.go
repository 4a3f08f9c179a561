package postgres

import (
	"fmt"
	"strings"
	"time"
)

// Settings are made for one transaction only, in the same trip as what they are
// for, because a session may be another one after each transaction.

// busyAfter bounds the waiting of a Swap for others' open transactions. A record
// that is asked again alone, because one of its batch was busy, has less.
const (
	busyAfter      = 100 * time.Millisecond
	busyAfterAlone = 20 * time.Millisecond
)

// planner keeps PostgreSQL from reading whole tables, or sorting what an index has
// in order, because they were small or empty when it planned; and from joining a
// batch to them in any way but record by record.
func planner() []setting {
	return []setting{
		{"enable_seqscan", "off"},
		{"enable_bitmapscan", "off"},
		{"enable_sort", "off"},
		{"enable_hashjoin", "off"},
		{"enable_mergejoin", "off"},
		{"jit", "off"},
	}
}

type setting struct{ name, value string }

// set returns the expressions that make the settings.
func set(all []setting) string {
	made := make([]string, len(all))
	for i, s := range all {
		made[i] = fmt.Sprintf("set_config('%s', '%s', true)", s.name, s.value)
	}
	return strings.Join(made, ", ")
}

// borrow makes settings in somebody else's transaction and returns how to give
// back what there was before, from settings of our own.
func borrow(all []setting) (made, givenBack string) {
	keep, back := make([]string, len(all)), make([]string, len(all))
	for i, s := range all {
		keep[i] = fmt.Sprintf("set_config('semel.%s', current_setting('%s'), true)", s.name, s.name)
		back[i] = fmt.Sprintf("set_config('%s', current_setting('semel.%s'), true)", s.name, s.name)
	}
	return `SELECT ` + strings.Join(keep, ", ") + ", " + set(all), `SELECT ` + strings.Join(back, ", ")
}

func lockTimeout(d time.Duration) setting { return setting{"lock_timeout", millis(d)} }

// millis is how PostgreSQL reads a duration. It is never zero, which would be
// no bound.
func millis(d time.Duration) string {
	return fmt.Sprintf("%dms", max(1, d.Milliseconds()))
}

// texts are the statements that depend on no record, put together once.
type texts struct {
	plan, swap, alone string // in a transaction of our own
	// In somebody else's, and how to give back what there was before.
	borrowPlan, borrowSwap, borrowAlone string
	givePlan, giveSwap                  string
	open, openHeld                      string // at the begin of an Atomic
}

func newTexts(o *Options) texts {
	var t texts
	swap, alone := append(planner(), lockTimeout(busyAfter)), append(planner(), lockTimeout(busyAfterAlone))
	t.plan, t.swap, t.alone = `SELECT `+set(planner()), `SELECT `+set(swap), `SELECT `+set(alone)
	t.borrowPlan, t.givePlan = borrow(planner())
	t.borrowSwap, t.giveSwap = borrow(swap)
	t.borrowAlone, _ = borrow(alone)
	bounds := ""
	if all := o.bounds(); len(all) > 0 {
		bounds = ", " + set(all)
	}
	t.open = `SELECT pg_current_xact_id()::text` + bounds
	t.openHeld = `SELECT CASE WHEN pg_try_advisory_xact_lock($1::bigint) THEN pg_current_xact_id()::text END` + bounds
	return t
}
