package storetest_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/storetest"
)

// With names of parts, these run and no others.
func TestChosenParts(t *testing.T) {
	t.Parallel()
	ran := make(map[string]bool)
	storetest.Run(t, func(t testing.TB) storetest.Subject[*memory.Tx] {
		part, _, _ := strings.Cut(strings.TrimPrefix(t.Name(), "TestChosenParts/"), "/")
		ran[part] = true
		var now clock
		return subject(memory.New(memory.Options{Now: now.Now}), now.Advance)
	}, "Lock", "Heartbeat")
	if got := slices.Sorted(maps.Keys(ran)); !slices.Equal(got, []string{"Heartbeat", "Lock"}) {
		t.Errorf("the parts %q ran, want Heartbeat and Lock", got)
	}
	all := storetest.CallParts()
	slices.Sort(all)
	check.Equal(t, len(slices.Compact(all)), len(storetest.CallParts()), "the number of different CallParts")
}
