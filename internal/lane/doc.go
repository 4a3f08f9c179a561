// Package lane does together what many callers ask for at the same time, so that
// their changes share one round trip and one flush to the disk: group commit.
//
// Nobody lingers. Who comes while nothing is under way does its own alone, by
// itself, and so pays for nothing but a lock. What comes meanwhile
// waits, and the next to be free takes all of it. The more callers there are, the
// larger the batches become, by themselves.
//
// A batch is sorted by key, so that batches of several processes cannot wait for
// each other in a circle, and a key is in one batch at a time. Who joins a batch that
// is on its way comes after the others, unsorted: that is for stores of one writer.
// Each answer belongs to the very item that asked, never to whoever asked under the
// same key.
//
// The steps [Lane.Join], [Lane.Take], [Lane.Settle] and [Lane.Leave] neither wait
// nor start anything. [Lane.Do] is the shell around them that does.
package lane
