package protocol

import (
	"testing"
	"time"

	"github.com/semelgo/semel/store"
)

// BenchmarkNext is the transition function alone, on a new key from its claim to
// its end.
func BenchmarkNext(b *testing.B) {
	identity := store.Record{ID: store.ID{1}, Operation: "create_payment", Scope: "9:user-4711", Key: "key"}
	claim := Event{Step: StepClaim, Owner: 7, Policy: Hold, Identity: identity, Lease: time.Minute}
	b.ReportAllocs()
	for b.Loop() {
		claimed := Next(store.Record{}, claim).Change.To
		end := Event{Step: StepSucceed, Token: claimed.Token, Policy: Hold, Expire: time.Hour}
		if d := Next(claimed, end); d.Answer != Apply {
			b.Fatalf("the end says %v", d.Answer)
		}
	}
}
