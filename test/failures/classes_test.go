package failures_test

import "testing"

// class is one way in which such services are known to fail.
type class[Tx any] struct {
	name string
	run  func(t *testing.T, w *world[Tx], by way)
}

// classes shows each class in h, under names of its own.
func classes[Tx any](t *testing.T, h home[Tx]) {
	t.Helper()
	for _, c := range all[Tx]() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, by := range ways() {
				t.Run(string(by), func(t *testing.T) {
					t.Parallel()
					c.run(t, newWorld(t, h, c.name+"-"+string(by)), by)
				})
			}
		})
	}
}

func all[Tx any]() []class[Tx] {
	return []class[Tx]{
		{"Unmarshalable", unmarshalable[Tx]},
		{"Cookies", cookies[Tx]},
		{"OtherUsers", otherUsers[Tx]},
		{"CopiedBody", copiedBody[Tx]},
		{"EmptyAnswer", emptyAnswers[Tx]},
		{"Head", headRequests[Tx]},
		{"Trailers", trailers[Tx]},
		{"HTTP2", http2[Tx]},
		{"Zombie", zombies[Tx]},
		{"SweepAgainstClaim", sweepAgainstClaim[Tx]},
		{"EqualAnswers", equalAnswers[Tx]},
		{"WithoutInTx", withoutInTx[Tx]},
		{"StoredRetention", storedRetention[Tx]},
		{"InnerMarks", innerMarks[Tx]},
	}
}
