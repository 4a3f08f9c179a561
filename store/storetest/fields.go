package storetest

import (
	"bytes"
	"math"
	"strings"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

func fieldChecks() []storeCheck {
	return []storeCheck{
		{"NilKeeps", nilKeeps},
		{"EmptyReplaces", emptyReplaces},
		{"Replaced", fieldsReplaced},
		{"Identity", identityStays},
		{"Tainted", taintedStays},
		{"Priority", priorityStays},
		{"OwnerIs64Bit", ownerIs64Bit},
		{"ContentBytes", contentBytes},
		{"Largest", largestOutcome},
		{"Copies", fieldsAreCopies},
	}
}

func nilKeeps(r *harness) {
	rec := r.mustCreateIn(store.InProgress)
	finish := move(rec, token(store.Succeeded, 1))
	r.mustApply(finish)
	want := rec
	want.Token = finish.To.Token
	r.mustHoldRecord(want)
}

// An empty outcome is an outcome.
func emptyReplaces(r *harness) {
	rec := r.mustCreateIn(store.InProgress)
	finish := move(rec, token(store.Succeeded, 1))
	finish.To.Input, finish.To.Outcome = []byte{}, []byte{}
	r.mustApply(finish)
	r.mustHoldRecord(finish.To)
}

func fieldsReplaced(r *harness) {
	rec := r.mustCreateIn(store.Pending)
	claim := move(rec, token(store.InProgress, 2))
	claim.To.Input, claim.To.Outcome = []byte("other input"), []byte("progress")
	r.mustApply(claim)
	r.mustHoldRecord(claim.To)
}

// A record's identity is written once; later changes do not affect it.
func identityStays(r *harness) {
	rec := create(r.fresh(), store.InProgress).To
	r.mustApply(store.Change{To: rec})
	finish := move(rec, token(store.Succeeded, 1))
	finish.To.Operation, finish.To.Scope, finish.To.Key = "another", "another", "another"
	finish.To.Fingerprint = []byte("another")
	r.mustApply(finish)
	want := rec
	want.Token = finish.To.Token
	r.mustHoldRecord(want)

	reopen := store.Change{If: finish.To.Token, To: store.Record{ID: rec.ID, Token: token(store.Pending, 1)}}
	r.mustApply(reopen)
	want.Token = reopen.To.Token
	r.mustHoldRecord(want)
}

func taintedStays(r *harness) {
	rec := r.fresh()
	rec.Tainted = true
	c := create(rec, store.InProgress)
	r.mustApply(c)
	for _, step := range []struct {
		state   store.State
		tainted bool
	}{{store.Pending, true}, {store.InProgress, true}, {store.InDoubt, true}, {store.Pending, false}, {store.InProgress, true}} {
		next := move(c.To, token(step.state, 2))
		next.To.Tainted = step.tainted
		r.mustApply(next)
		check.Equal(r, r.mustRead(rec.ID).Tainted, step.tainted, "%v written with Tainted %v reads", step.state, step.tainted)
		c = next
	}
}

// A priority is written once, within its bounds.
func priorityStays(r *harness) {
	for priority := int8(store.MinPriority); priority <= store.MaxPriority; priority++ {
		rec := r.fresh()
		rec.Priority = priority
		c := create(rec, store.Pending)
		r.mustApply(c)
		next := move(c.To, token(store.InProgress, 2))
		next.To.Priority = -priority
		r.mustApply(next)
		check.Equal(r, r.mustRead(rec.ID).Priority, priority, "a record of priority %d reads", priority)
	}
	for _, priority := range []int8{store.MinPriority - 1, store.MaxPriority + 1, math.MinInt8, math.MaxInt8} {
		bad := create(r.fresh(), store.Pending)
		bad.To.Priority = priority
		if err := r.swap(bad)[0].Err; err == nil || !strings.Contains(err.Error(), "priority") {
			r.Errorf("priority %d is answered %v, want an Err that names it", priority, err)
		}
		r.mustBeAbsent(bad.To.ID)
	}
}

// Owners use all 64 bits, and attempts 31 of theirs.
func ownerIs64Bit(r *harness) {
	for _, owner := range []uint64{1, math.MaxInt64, 1 << 63, math.MaxUint64} {
		rec := r.fresh()
		rec.Token = store.Token{State: store.InProgress, Attempt: math.MaxInt32, Owner: owner}
		c := store.Change{To: rec}
		r.mustApply(c)
		r.mustHoldRecord(rec)
		r.mustApply(move(rec, token(store.Succeeded, math.MaxInt32)))
	}
}

// bytesOf returns strings that stores tend to change.
func bytesOf() []string {
	return []string{
		"", "\x00", "a\x00b", "a\x00c", "\xff\xfe\x80", "\xc3\x28", "ключ", "e\u0301", "\u00e9",
		" key ", "key\t", "line\nline\r\n", "'; drop table records; --", `"quoted\"`, "%00", "../..",
	}
}

func contentBytes(r *harness) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	contents := [][]byte{all}
	for _, text := range bytesOf() {
		contents = append(contents, []byte(text))
	}
	for _, content := range contents {
		rec := r.fresh()
		rec.Fingerprint, rec.Input, rec.Outcome = content, content, content
		c := create(rec, store.Succeeded)
		r.mustApply(c)
		r.mustHoldRecord(c.To)
	}
}

// An outcome of the largest size that the store reports is kept complete.
func largestOutcome(r *harness) {
	rec := r.mustCreateIn(store.InProgress)
	finish := move(rec, token(store.Succeeded, 1))
	finish.To.Outcome = r.largest()
	finish.To.Outcome[0], finish.To.Outcome[len(finish.To.Outcome)-1] = 1, 2
	r.mustApply(finish)
	if got := r.mustRead(rec.ID).Outcome; !bytes.Equal(got, finish.To.Outcome) {
		r.Errorf("an outcome of %d bytes comes back otherwise, with %d", len(finish.To.Outcome), len(got))
	}
}

// largest returns an outcome of the largest size.
func (r *harness) largest() []byte {
	r.Helper()
	const most = 64 << 20
	if r.caps.MaxOutcome < 1 || r.caps.MaxOutcome > most {
		r.Fatalf("Capabilities.MaxOutcome = %d, want 1 to %d", r.caps.MaxOutcome, most)
	}
	return make([]byte, r.caps.MaxOutcome, r.caps.MaxOutcome+1)
}

// A caller may change its bytes after the call without changing the record.
func fieldsAreCopies(r *harness) {
	mine := []byte("abc")
	rec := r.fresh()
	rec.Fingerprint, rec.Input, rec.Outcome = mine, mine, mine
	c := create(rec, store.InProgress)
	r.mustApply(c)
	mine[0] = 'x'
	for range 2 {
		got := r.mustRead(rec.ID)
		for _, b := range [][]byte{got.Fingerprint, got.Input, got.Outcome} {
			if string(b) != "abc" {
				r.Fatalf("the outcome reads %q, want abc", b)
			}
			b[1] = 'x'
		}
	}
}
