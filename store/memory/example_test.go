package memory_test

import (
	"context"
	"fmt"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// A handler that takes a *memory.Tx is tested without a database: what it puts
// is there exactly when its transaction has committed.
func Example() {
	s := memory.New(memory.Options{})
	id := store.NewID("create_group", "user 7", "key 1")
	done := store.Change{To: store.Record{
		ID: id, Operation: "create_group", Scope: "user 7", Key: "key 1",
		Token: store.Token{State: store.Succeeded, Attempt: 1, Owner: 42},
	}}
	verdict, err := s.Atomic(context.Background(), id, true,
		func(_ context.Context, tx *memory.Tx, _ store.SwapResult) (*store.Change, error) {
			return &done, tx.Put("group/1", []byte("gophers"))
		})
	value, _ := s.Value("group/1")
	fmt.Println(verdict, err, string(value))
	// Output: Committed <nil> gophers
}
