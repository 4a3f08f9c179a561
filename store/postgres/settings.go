package postgres

import (
	"fmt"
	"strings"
	"time"
)

// Settings are made for one transaction only, in the same trip as what they are
// for, because a session may be another one after each transaction.

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

// What keeps PostgreSQL from reading whole tables because they were small or empty
// when it planned, from sorting what an index has in order, and from joining a
// batch to a table in any way but record by record. Each costs a little, so there
// are no more of them than the statements need.
func byKey() []setting { return []setting{{"enable_seqscan", "off"}} }

func byKeys() []setting {
	return append(byKey(), setting{"enable_hashjoin", "off"}, setting{"enable_mergejoin", "off"})
}

func inOrder() []setting { return append(listed(), setting{"enable_sort", "off"}) }

// What is listed may be sorted: to be planned as if it could not would have it compiled.
func listed() []setting { return append(byKey(), setting{"enable_bitmapscan", "off"}) }

type setting struct{ name, value string }

// set returns the expressions that make the settings.
func set(all []setting) string {
	made := make([]string, len(all))
	for i, s := range all {
		made[i] = fmt.Sprintf("set_config('%s', '%s', true)", s.name, s.value)
	}
	return strings.Join(made, ", ")
}

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

// borrow keeps what there was in settings of our own.
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

// frame is what goes around a trip that borrows. Behind a savepoint, the trip can
// be undone.
func (b tempSettings) frame(undone bool) frame {
	if undone {
		return frame{before: []string{saveSwap, b.made}, after: []string{b.givenBack, keepSwap}}
	}
	return frame{before: []string{b.made}, after: []string{b.givenBack}}
}

// bounding is the frame of a trip that makes the settings, of which one that says so
// itself may wait for others that long.
func bounding(all []setting, wait time.Duration) frame {
	f := frame{before: []string{`SELECT ` + set(all)}}
	if wait > 0 {
		f.wait = millis(wait)
	}
	return f
}

// settingsBehind are the expressions of set behind another one.
func settingsBehind(all []setting) string {
	if len(all) == 0 {
		return ""
	}
	return ", " + set(all)
}

func lockTimeout(d time.Duration) setting { return setting{"lock_timeout", millis(d)} }

// millis is how PostgreSQL reads a duration. It is never zero, which would be
// no bound.
func millis(d time.Duration) string {
	return fmt.Sprintf("%dms", max(1, d.Milliseconds()))
}

// texts are the statements that depend on no record, put together once.
type texts struct {
	byKey, inOrder   string       // before what reads
	listed           string       // before what reads those that are due
	queue            string       // before what hands out
	lent             tempSettings // before a read or a last change within a handler's transaction
	swap, swapTx     frames       // around changes, and the same within a caller's transaction
	begin            string       // before what follows
	open             string       // at the begin of an Atomic; it borrows what look gives back
	openHeld         string       // likewise, with the right to the record; what it borrows stands gives back
	first, firstHeld string       // creates at the begin of a batch
	outright         string       // likewise, of a change that isOutright
	outrightHeld     string
	batch, batchHeld string // before another change, there
	calling          string // before a batch whose COMMIT waits for callbacks
	keep             string // before a failure that is kept when its transaction is rolled back
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
	bounded := made(o.batchBounds())
	return texts{
		byKey: `SELECT ` + set(byKey()), inOrder: `SELECT ` + set(inOrder()), lent: lent,
		listed: `SELECT ` + set(listed()),
		queue:  `SELECT ` + set(append(append(byKeys(), inOrder()[1:]...), lockTimeout(busyAfter))),
		swap: frames{
			one: bounding(one, busyAfter), many: bounding(many, 0), look: bounding(byKey(), 0),
			alone: bounding(alone, busyAfterAlone), hasty: bounding(hasty, busyAtOnce),
		},
		swapTx: frames{
			one: newTempSettings(one).frame(true), many: newTempSettings(many).frame(true), look: lent.frame(false),
			alone: newTempSettings(alone).frame(true), hasty: newTempSettings(hasty).frame(true),
		},
		begin:        beginOf(o.Isolation),
		open:         `SELECT pg_current_xact_id()::text, ` + settings,
		openHeld:     openHeld(o.bounds()),
		first:        insert + firstValue + `$2::smallint / (` + bounded + `)::integer` + otherValues,
		firstHeld:    insert + firstValue + `$2::smallint / (pg_try_advisory_xact_lock($15::bigint) AND ` + bounded + `)::integer` + otherValues,
		outright:     outright + `$2::smallint / (` + bounded + `)::integer` + outrightValues,
		outrightHeld: outright + `$2::smallint / (pg_try_advisory_xact_lock($12::bigint) AND ` + bounded + `)::integer` + outrightValues,
		calling:      `SELECT true` + settingsBehind(o.bounds()),
		batch:        `SELECT 1 / (` + bounded + `)::integer`,
		batchHeld:    `SELECT 1 / (pg_try_advisory_xact_lock($1::bigint) AND ` + bounded + `)::integer`,
		keep:         `SELECT ` + set(append(byKey(), lockTimeout(busyAfter))),
	}
}

// openHeld begins an Atomic with the right to the record, under these bounds.
func openHeld(bounds []setting) string {
	return `SELECT current_setting('enable_seqscan'), CASE WHEN ` + made(append(byKey(), bounds...)) +
		` AND pg_try_advisory_xact_lock($1::bigint) THEN pg_current_xact_id()::text END`
}
