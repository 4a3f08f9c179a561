package semel

import (
	"testing"
	"time"

	"github.com/semelgo/semel/store"
)

// BenchmarkNext is the transition function alone, on a new key from its claim to
// its end.
func BenchmarkNext(b *testing.B) {
	identity := store.Record{ID: store.ID{1}, Operation: "create_payment", Scope: "9:user-4711", Key: "key"}
	claim := event{step: stepClaim, owner: 7, policy: policyHold, identity: identity, lease: time.Minute}
	b.ReportAllocs()
	for b.Loop() {
		claimed := next(store.Record{}, claim).change.To
		end := event{step: stepSucceed, token: claimed.Token, policy: policyHold, expire: time.Hour}
		if d := next(claimed, end); d.answer != answerApply {
			b.Fatalf("the end says %v", d.answer)
		}
	}
}
