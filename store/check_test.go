package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

func TestCheckNamesTheField(t *testing.T) {
	t.Parallel()
	good := func() store.Change {
		r := store.Record{Operation: "op", Scope: "scope", Key: "key", Input: []byte("in"), Outcome: []byte("out")}
		r.State = store.Succeeded
		return store.Change{To: r}
	}
	for field, spoil := range map[string]func(c *store.Change){
		"state":     func(c *store.Change) { c.To.State = store.Absent },
		"operation": func(c *store.Change) { c.To.Operation = strings.Repeat("o", store.MaxOperation+1) },
		"scope":     func(c *store.Change) { c.To.Scope = strings.Repeat("s", store.MaxScope+1) },
		"priority":  func(c *store.Change) { c.To.Priority = store.MaxPriority + 1 },
		"key":       func(c *store.Change) { c.To.Key = strings.Repeat("k", store.MaxKey+1) },
		"input":     func(c *store.Change) { c.To.Input = make([]byte, 11) },
		"outcome":   func(c *store.Change) { c.To.Outcome = make([]byte, 11) },
	} {
		c := good()
		check.Require(t, c.Check(10), "Check of a good change")
		spoil(&c)
		if err := c.Check(10); err == nil || !strings.Contains(err.Error(), field+" ") {
			t.Errorf("Check of a bad %s = %v, want it named", field, err)
		}
	}
	c := good() // what names a record is not written again
	c.If.State, c.To.Key = store.InProgress, strings.Repeat("k", store.MaxKey+1)
	check.NoError(t, c.Check(10), "Check of a change of the current record")
}

func TestCheckBatch(t *testing.T) {
	t.Parallel()
	batch := make([]store.Change, 3)
	for i := range batch {
		batch[i].To.ID[0] = byte(i)
	}
	if err := store.CheckBatch(batch, 3); err != nil {
		t.Errorf("CheckBatch = %v, want nothing wrong", err)
	}
	check.Fails(t, store.CheckBatch(batch, 2), "a batch that is too large is let through")
	batch[2].To.ID = batch[0].To.ID
	if err := store.CheckBatch(batch, 3); err == nil || !strings.Contains(err.Error(), batch[0].To.ID.String()) {
		t.Errorf("CheckBatch = %v, want the record that is named twice", err)
	}
}

func TestCheckBytes(t *testing.T) {
	t.Parallel()
	changes := []store.Change{
		{To: store.Record{Input: make([]byte, 3), Outcome: make([]byte, 4)}}, {To: store.Record{Outcome: make([]byte, 5)}},
	}
	for most, good := range map[int]bool{0: true, 11: false, 12: true} {
		if err := store.CheckBytes(changes, most); (err == nil) != good || !good && !errors.Is(err, store.ErrTooManyBytes) {
			t.Errorf("CheckBytes of 12 bytes, at most %d: %v, want it good: %v", most, err, good)
		}
	}
}
