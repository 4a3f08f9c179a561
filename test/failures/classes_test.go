package failures_test

import "testing"

// failureClass is one way in which such services are known to fail.
type failureClass[Tx any] struct {
	name string
	run  func(t *testing.T, w *fixture[Tx], by handlerMode)
}

// failureClasses runs each class on h.
func failureClasses[Tx any](t *testing.T, h database[Tx]) {
	t.Helper()
	for _, c := range all[Tx]() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, by := range handlerModes() {
				t.Run(string(by), func(t *testing.T) {
					t.Parallel()
					c.run(t, newFixture(t, h, c.name+"-"+string(by)), by)
				})
			}
		})
	}
}

func all[Tx any]() []failureClass[Tx] {
	return []failureClass[Tx]{
		{"Unmarshalable", unmarshalable[Tx]},
		{"Cookies", cookies[Tx]},
		{"OtherUsers", otherUsers[Tx]},
		{"CopiedBody", copiedBody[Tx]},
		{"EmptyAnswer", emptyAnswers[Tx]},
		{"Head", headRequests[Tx]},
		{"Trailers", trailers[Tx]},
		{"HTTP2", http2[Tx]},
		{"Zombie", lateLeader[Tx]},
		{"SweepAgainstClaim", sweepAgainstClaim[Tx]},
		{"EqualAnswers", equalAnswers[Tx]},
		{"WithoutInTx", withoutInTx[Tx]},
		{"StoredRetention", storedRetention[Tx]},
		{"InnerMarks", innerMarks[Tx]},
	}
}
