// Package storetest holds stores to their contract.
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
// The suite has layers: what the contract of package store says of single calls;
// of clocks, of late changes, and of reports; of changes that join others,
// and of handing out waiting records, where the store does so; of transactions, of
// transactions beside others,
// of statements that are handed over all together, where the store takes them, and
// of what a handler leaves behind; then every edge of the protocol's table; random
// histories against a model, and races; and at last an engine on top whose leaders
// are outrun, and whose calls fail or lose their answers. A layer that fails ends the
// run, because the ones above it would only repeat what it said; the log says that
// they were skipped.
//
// Names of checks say what they hold a store to: Zombie, Sweep, Queue, Keys, Clock
// and PurgeTx, for example, stand for failures that other libraries have had.
//
// A random history that fails prints its seed; [SeedEnv] repeats it, and
// [HistoriesEnv] asks for more of them.
//
// A store whose database is at the other end of a connection gives the suite a
// way to lose real replies, in Subject.Lose.
//
// Package storetest's own tests run the suite against stores that are broken in
// one way each, and require that each fails exactly the check named for it.
//
// [Faulty] puts failing calls between an engine and any store.
package storetest
