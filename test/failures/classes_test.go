package failures_test

import "testing"

// failureClass is one way in which such services are known to fail.
type failureClass[Tx any] struct {
	name string
	run  func(t *testing.T, w *fixture[Tx], by handlerMode)

	inTx bool // it needs a store with transactions
}

// failureClasses runs each class on h.
func failureClasses[Tx any](t *testing.T, h database[Tx]) {
	t.Helper()
	for _, c := range all[Tx]() {
		if c.inTx && h.outside != nil {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, by := range h.modes() {
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
		{"Unmarshalable", unmarshalable[Tx], false},
		{"Zombie", lateLeader[Tx], false},
		{"SweepAgainstClaim", sweepAgainstClaim[Tx], false},
		{"EqualAnswers", equalAnswers[Tx], false},
		{"WithoutInTx", withoutInTx[Tx], true},
		{"StoredRetention", storedRetention[Tx], false},
		{"InnerMarks", innerMarks[Tx], false},
	}
}
