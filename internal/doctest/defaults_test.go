package doctest_test

import (
	"strings"
	"testing"
)

// TestDefaults: the defaults in docs/settings.md are those that the code sets.
func TestDefaults(t *testing.T) {
	en, zh := read(t, settingsPage), read(t, translation(settingsPage))
	for _, row := range []struct{ setting, file, code, en, zh string }{
		{"Lease", "options.go", "setDefault(&o.Lease, 30*time.Second)", "30 s", "30 秒"},
		{"Heartbeat", "options.go", "t.beat = either(t.beat, t.lease/3)", "a third of the lease", "租约的三分之一"},
		{"Retention", "options.go", "defaultRetention = 24 * time.Hour", "24 h from the outcome", "从得出结果起 24 小时"},
		{"MaxWaiters", "options.go", "setDefault(&o.MaxWaiters, 1000)", "1000", "1000"},
		{"RecordTimeout", "options.go", "setDefault(&o.RecordTimeout, 5*time.Second)", "5 s", "5 秒"},
		{"MaxQueued", "options.go", "setDefault(&o.MaxQueued, 10_000)", "10,000", "10,000"},
		{"CacheBytes`, `CacheAge", "options.go", "setDefault(&o.CacheAge, time.Second)", "none, 1 s", "不用，1 秒"},
		{"Survive", "options.go", "o.Survive = cmp.Or(o.Survive, store.PowerLoss)", "`store.PowerLoss`", "`store.PowerLoss`"},
		{"MaxUnrecorded", "options.go", "setDefault(&o.MaxUnrecorded, 1000)", "1000", "1000"},
		{"MaxErrors", "retry.go", "setDefault(&r.MaxErrors, 10)", "10", "10"},
		{"MaxCrashes", "retry.go", "setDefault(&r.MaxCrashes, 3)", "3", "3"},
		{"Delay", "retry.go", "jitter(min(time.Second<<min(max(errors-1, 0), 12), time.Hour))", "1 s, doubled each time up to 1 h, and spread by up to a half either way", "1 秒，每次加倍，直到 1 小时，并随机增减至多一半"},
		{"MaxBody`, `MaxResponse", "semelhttp/options.go", "defaultMaxResponse = 960 << 10", "1 MiB, 960 KiB", "1 MiB，960 KiB"},
		{"MaxBody`, `MaxResponse", "semelhttp/options.go", "defaultMax = 1 << 20", "1 MiB, 960 KiB", "1 MiB，960 KiB"},
	} {
		if !strings.Contains(read(t, row.file), row.code) {
			t.Errorf("%s has another default of %s than %q: change docs/settings.md, its translation, and this test", row.file, row.setting, row.code)
		}
		if want := "\n| `" + row.setting + "` | " + row.en + " | "; !strings.Contains(en, want) {
			t.Errorf("%s lacks a row that begins %q", settingsPage, want)
		}
		if want := "\n| `" + strings.ReplaceAll(row.setting, ", ", "、") + "` | " + row.zh + " | "; !strings.Contains(zh, want) {
			t.Errorf("%s lacks a row that begins %q", translation(settingsPage), want)
		}
	}
}
