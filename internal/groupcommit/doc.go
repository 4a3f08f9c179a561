// Package groupcommit combines the requests of concurrent callers into batches.
// The requests of one batch share one round trip and one flush to disk.
//
// There is no linger time. A request that arrives while no batch is running is sent
// alone and at once; it costs one lock. Requests that arrive later wait, and the
// next batch takes all of them. Batches therefore grow with the number of callers.
//
// A batch has its requests in the order of their arrival, and a key is in at most one
// running batch. Each result goes to the item that requested it, not to other items of
// the same key.
//
// The methods [Batcher.Enqueue], [Batcher.Take], [Batcher.Settle] and
// [Batcher.Withdraw] neither wait nor start goroutines. [Batcher.Do] adds both.
package groupcommit
