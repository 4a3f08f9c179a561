package storetest

// checkCase is one requirement, tested with a harness over a fresh store.
type checkCase[H any] struct {
	name string
	run  func(r H)
}

// storeCheck is a check that needs no transaction.
type storeCheck = checkCase[*harness]

// txCheck is a check of a store with transactions.
type txCheck[Tx any] = checkCase[*txHarness[Tx]]

// engineCheck is a check of engines over a store.
type engineCheck = checkCase[*engineHarness]
