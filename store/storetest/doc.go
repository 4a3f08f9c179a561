// Package storetest tests whether a store keeps its contract.
//
// A store's own test is one call of [Run]:
//
//	func TestContract(t *testing.T) {
//		storetest.Run(t, func(t testing.TB) storetest.Subject[*sql.Tx] {
//			db := openEmpty(t)
//			return storetest.Subject[*sql.Tx]{
//				Store:   mystore.New(db),
//				Effect:  func(ctx context.Context, tx *sql.Tx, key string) error { … },
//				Effects: func(key string) int { … },
//			}
//		})
//	}
//
// [RunStore] tests a store without transactions, with the checks that need none.
//
// The suite has layers: single calls; clocks, late writers and reports; changes that
// join a batch, and queues, where the store has them; transactions, alone and
// concurrent; batches of statements, where the store accepts them; goroutines that a
// handler leaves running; every transition of the protocol; random histories against
// a model, and races; and an engine on the store, with leaders that are taken over,
// failing calls and lost replies. A layer that fails ends the run, because later
// layers would only repeat its failures; the log says that they were skipped.
//
// The parts Zombie, Sweep, Queue, Keys, Clock and PurgeTx, for example, reproduce
// failures of other libraries.
//
// A random history that fails prints its seed; [SeedEnv] repeats it, and
// [HistoriesEnv] sets their number.
//
// For a store that uses a network connection, Subject.Lose lets the suite lose real
// replies.
//
// The tests of this package run the suite against stores that are broken in one way
// each, and require that each fails exactly the check that is named for it.
//
// [Faulty] and [FaultyTx] are stores whose calls fail, for tests of engines.
package storetest
