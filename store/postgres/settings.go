package postgres

import (
	"fmt"
	"strings"
	"time"
)

// On the application's pool, settings are made for one transaction only, and in the
// round trip of the statements that need them: a pooler may assign another session to
// the next transaction.

// busyAfter limits how long a Swap waits for other open transactions. A record that
// is retried alone, because its batch was blocked, waits for less; and after manyBusy
// of them were still busy, there is no further retry. So a Swap waits for about half a
// second, plus the round trips. Locks that are released within these times are not
// counted: a batch may wait for several of them, one after the other.
const (
	busyAfter      = 100 * time.Millisecond
	busyAfterAlone = 3 * time.Millisecond

	manyBusy = 128
)

// keyed are the settings for statements that find records by their IDs, join a batch to the
// table, or read an index in its order. A plan that was made while the table was small would
// read the whole table later. What such statements sort seems so expensive that the server
// would compile it.
func keyed(wait time.Duration) []setting {
	return append(listed(), setting{"enable_hashjoin", "off"}, setting{"enable_mergejoin", "off"}, setting{"lock_timeout", millis(wait)},
		setting{"enable_sort", "off"}, setting{"jit", "off"})
}

// byKey is what a statement for one record needs: each setting costs time in a handler's
// transaction.
func byKey() []setting { return []setting{{"enable_seqscan", "off"}} }

// listed are the settings for lists that may be sorted.
func listed() []setting { return append(byKey(), setting{"enable_bitmapscan", "off"}) }

// setting is a setting of the server with its value.
type setting struct{ name, value string }

// set returns the expressions that make the settings.
func set(all []setting) string {
	made := make([]string, len(all))
	for i, s := range all {
		made[i] = fmt.Sprintf("set_config('%s', '%s', true)", s.name, s.value)
	}
	return strings.Join(made, ", ")
}

// setSession is set for the rest of the session.
func setSession(all []setting) string { return strings.ReplaceAll(set(all), ", true)", ", false)") }

// tempSettings are settings within another transaction: the statements that make
// them, and those that restore the earlier values.
type tempSettings struct{ made, givenBack string }

// newTempSettings keeps the earlier values in settings whose names begin with semel.
func newTempSettings(all []setting) tempSettings {
	keep, back := make([]string, len(all)), make([]string, len(all))
	for i, s := range all {
		keep[i] = fmt.Sprintf("set_config('semel.%s', current_setting('%s'), true)", s.name, s.name)
		back[i] = fmt.Sprintf("set_config('%s', current_setting('semel.%s'), true)", s.name, s.name)
	}
	return tempSettings{
		made:      `SELECT ` + strings.Join(keep, ", ") + ", " + set(all),
		givenBack: `SELECT ` + strings.Join(back, ", "),
	}
}

const (
	saveSwap = `SAVEPOINT semel_swap`
	keepSwap = `RELEASE SAVEPOINT semel_swap`
	undoSwap = `ROLLBACK TO SAVEPOINT semel_swap`
)

// frame returns the frame of a round trip with the settings. After a failure of the round
// trip the transaction can continue.
func (b tempSettings) frame() frame {
	return frame{before: []string{saveSwap, b.made}, after: []string{b.givenBack, keepSwap}}
}

// framed is the frame of a round trip that makes the settings.
func framed(all []setting) frame { return frame{before: []string{`SELECT ` + set(all)}} }

// millis formats a duration for PostgreSQL. It is never zero, which would mean no limit.
func millis(d time.Duration) string { return fmt.Sprintf("%dms", max(1, d.Milliseconds())) }

// frame has the statements before and after others in the same round trip.
type frame struct{ before, after []string }

// frames are the frames of a swapper's round trips.
type frames [2]frame

const (
	first = iota // all changes, and reads
	alone        // a change that was busy in a batch
)

// texts are the statements that depend on the options and on no table.
type texts struct {
	keyed, listed         frame        // settings before statements on the pool
	lent                  tempSettings // settings within a handler's transaction
	swap, session, swapTx frames       // around changes on the pool, on the store's own connections, and in a caller's transaction
	open                  string       // begins an Atomic with the right to the record, or none if that is null; look restores the settings
	change                string       // begins an AtomicBatch in the same way, and fails without the right
}

func newTexts(o *Options) texts {
	lent := newTempSettings(byKey())
	settings := strings.TrimPrefix(lent.made, `SELECT `)
	if all := o.bounds(); len(all) > 0 {
		settings = set(all) + ", " + settings
	}
	const haveRight = `coalesce(pg_try_advisory_xact_lock($1::bigint), true)`
	of := func(wait time.Duration) frame { return framed(keyed(wait)) }
	inTx := func(wait time.Duration) frame { return newTempSettings(keyed(wait)).frame() }
	return texts{
		keyed: of(busyAfter), listed: framed(listed()), lent: lent,
		swap:    frames{first: of(busyAfter), alone: of(busyAfterAlone)},
		session: frames{alone: of(busyAfterAlone)},
		swapTx:  frames{first: inTx(busyAfter), alone: inTx(busyAfterAlone)},
		open:    `SELECT CASE WHEN ` + haveRight + ` THEN pg_current_xact_id()::text END, ` + settings,
		change:  `SELECT 1 / ` + haveRight + `::integer, ` + settings,
	}
}

// framesOf returns the frames for changes on a connection.
func (t *texts) framesOf(conn lease) *frames {
	if conn.own {
		return &t.session
	}
	return &t.swap
}
