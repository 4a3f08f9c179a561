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
// is retried alone, because its batch was blocked, waits for less; after someBusy
// of them were still busy, the others hardly wait; and after manyBusy there is no
// further retry. So a Swap waits for about half a second, plus the round trips.
// Locks that are released within these times are not counted: a batch may wait for
// several of them, one after the other.
const (
	busyAfter      = 100 * time.Millisecond
	busyAfterAlone = 20 * time.Millisecond
	busyAtOnce     = time.Millisecond

	someBusy = 8
	manyBusy = 128
)

// byKey are the settings for statements that find records by their IDs. A plan that
// was made while the table was small would read the whole table later. Each setting
// costs time, so a statement gets only those that it needs.
func byKey() []setting { return []setting{{"enable_seqscan", "off"}} }

// byKeys are the settings for statements that join a batch to the table.
func byKeys() []setting {
	return append(byKey(), setting{"enable_hashjoin", "off"}, setting{"enable_mergejoin", "off"})
}

// inOrder are the settings for statements that read an index in its order.
func inOrder() []setting { return append(listed(), setting{"enable_sort", "off"}) }

// listed are the settings for lists that may be sorted. Without enable_sort their plans
// would seem so expensive that the server compiles them.
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

// made returns the condition that makes the settings, and is true.
func made(all []setting) string {
	of := []string{"true"}
	for _, s := range all {
		of = append(of, set([]setting{s})+" IS NOT NULL")
	}
	return strings.Join(of, " AND ")
}

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

// frame returns the frame of a round trip with the settings. With a savepoint, the
// transaction continues after a failure.
func (b tempSettings) frame(undone bool) frame {
	if undone {
		return frame{before: []string{saveSwap, b.made}, after: []string{b.givenBack, keepSwap}}
	}
	return frame{before: []string{b.made}, after: []string{b.givenBack}}
}

// framed is the frame of a round trip that makes the settings.
func framed(all []setting) frame { return frame{before: []string{`SELECT ` + set(all)}} }

func lockTimeout(d time.Duration) setting { return setting{"lock_timeout", millis(d)} }

// millis formats a duration for PostgreSQL. It is never zero, which would mean no
// limit.
func millis(d time.Duration) string {
	return fmt.Sprintf("%dms", max(1, d.Milliseconds()))
}

// texts are the statements that depend on the options and on no table.
type texts struct {
	byKey, inOrder, listed string       // settings before reads
	queue                  string       // settings before claims
	lent                   tempSettings // settings within a handler's transaction
	swap, swapTx           frames       // around changes, and the same within a caller's transaction
	open, openHeld         string       // begin an Atomic, without and with the right to the record; look restores the settings
	first, firstHeld       string       // begin an AtomicBatch with a create
	batch, batchHeld       string       // begin an AtomicBatch with another change
	keep                   string       // settings before a failure that is stored after a rollback
}

func newTexts(o *Options) texts {
	one, many := append(byKey(), lockTimeout(busyAfter)), append(byKeys(), lockTimeout(busyAfter))
	alone := append(byKey(), lockTimeout(busyAfterAlone))
	hasty := append(byKey(), lockTimeout(busyAtOnce))
	lent := newTempSettings(byKey())
	settings := strings.TrimPrefix(lent.made, `SELECT `)
	if all := o.bounds(); len(all) > 0 {
		settings = set(all) + ", " + settings
	}
	bounded := made(o.bounds())
	return texts{
		byKey: `SELECT ` + set(byKey()), inOrder: `SELECT ` + set(inOrder()), lent: lent,
		listed: `SELECT ` + set(listed()),
		queue:  `SELECT ` + set(append(append(byKeys(), inOrder()[1:]...), lockTimeout(busyAfter))),
		swap: frames{
			one: framed(one), many: framed(many), look: framed(byKey()), alone: framed(alone), hasty: framed(hasty),
		},
		swapTx: frames{
			one: newTempSettings(one).frame(true), many: newTempSettings(many).frame(true), look: lent.frame(false),
			alone: newTempSettings(alone).frame(true), hasty: newTempSettings(hasty).frame(true),
		},
		open:      `SELECT pg_current_xact_id()::text, ` + settings,
		openHeld:  `SELECT CASE WHEN pg_try_advisory_xact_lock($1::bigint) THEN pg_current_xact_id()::text END, ` + settings,
		first:     insert + firstValue + `$2::smallint / (` + bounded + `)::integer` + otherValues,
		firstHeld: insert + firstValue + `$2::smallint / (pg_try_advisory_xact_lock($15::bigint) AND ` + bounded + `)::integer` + otherValues,
		batch:     `SELECT 1 / (` + bounded + `)::integer`,
		batchHeld: `SELECT 1 / (pg_try_advisory_xact_lock($1::bigint) AND ` + bounded + `)::integer`,
		keep:      `SELECT ` + set(append(byKey(), lockTimeout(busyAfter))),
	}
}
