// Package sim explores Semel's protocol exhaustively. It runs the real engine, not a
// model of it. Callers, workers, sweepers, purgers and operators are coroutines, called
// actors. An actor stops before every call to a store or to a receiver of effects. At
// each stop, a scheduler decides which actor continues and which fault occurs. Every
// order of the calls, with every fault that the budget allows, is run once. After each
// step the invariants are compared with the true state.
//
// A run that breaks an invariant is shortened. The explorer prints its steps, and a
// line that repeats it:
//
//	go run ./internal/sim/cmd/explore -replay 'leased/faults:00843'
//
// # Events
//
// An actor's call is executed, or it is lost, or its reply is lost, or it arrives late.
// A commit is rolled back, or aborted because of a conflict, or it has no reply: then it
// is decided later, and its last statement has been executed or is still in flight. An
// actor dies. A lease expires; its leader renews it although it has expired. A pending
// record becomes due. A retention ends. The receiver of an effect rejects it.
//
// Time does not pass in other ways, and no timer of the engine fires: the scheduler
// sends the heartbeats of callers, and workers send their own. Waiting followers are not
// explored. A leader that polls a busy record is modelled as waiting for it. A Swap of
// several records is executed record by record, and other actors may run in between. A
// Dequeue is one step. The order of pending records is not modelled.
//
// Most actors have a process of their own. In plans with Shared, the callers share an
// engine, and their changes are sent through the engine's group commit. The goroutine
// that sends a batch is an actor, and so is the goroutine that releases an abandoned
// claim: they continue, lose replies and die like other actors. A batch is one step: all
// of it is executed or nothing, and a lost reply is lost for all of it. A caller cancels
// only while its claim is in flight. Only in these processes is the later recording of
// outcomes explored. Callers of one key share a process only under Heal, where every
// follower sends its own request. One batch runs at a time, and the number of waiting
// requests is not bounded.
//
// In plans with Joinable, a batch is a transaction that other changes join until its
// commit. The batch is lost before it has written its first changes or the joined ones;
// or it is Busy as a whole; or its commit has no reply and is decided later. Until then
// it holds each record that it has written. (A store that holds all records at once shows
// less.) The number of joining changes is not bounded. A request that repeats a change
// of such a transaction waits for the transaction.
//
// In plans with CacheAges, the entries of the engines' caches become older, in halves of
// their maximum age.
//
// The statements of a DoBatch are one step together with their commit. A batch without a
// reply is in flight until it arrives or is rolled back, and no retention ends meanwhile.
// A function may enqueue another call in its own transaction. Other actors find that
// record Busy until the transaction has ended.
//
// A run ends when it reaches a known state. The next step of an actor depends only on
// the results that it has received. The digest of these results therefore represents the
// actor, and no snapshot of real code is needed. The shared state of the actors of one
// process depends on these results too, and on the order in which they wait and cancel.
//
// # Invariants
//
//	I1    a key has one effect; under AtLeastOnce, at most one for each attempt
//	I2    a Failed record never has an effect
//	I2t   a reported failure was stored, and there is no effect; a caller that
//	      received "did not happen" has had no effect
//	I2k   nor has an earlier attempt of that key
//	I3    a Succeeded record has an effect
//	I3t   the effect of a reported success exists
//	I4    a reported result equals the stored one, byte for byte
//	I5    attempt numbers never go back, and each attempt has one owner
//	I6    a final record does not change, except for a redrive of a Failed record
//	      with a key that the system owns
//	I6p   a purge removes records after their retention, and no unfinished record
//	I7    only its leader changes an attempt, except as expiry and evidence allow
//	I8    no response is given to another request
//	I9    a change that needs an expired lease comes after the expiry that the leader
//	      last set, and a pending record is claimed when it is due
//	I10   no response crosses scopes
//	I11   no effect without an applied claim
//	I12   when faults have stopped, a retry settles the key as the policy says; so do
//	      a sweeper and a worker, if the system owns the key
//	I13   an enqueued record exists and can be run until it is finished
//	I14   a caller that canceled before it led leaves no claim behind, except for a
//	      takeover without a reply that is applied later
//	I15   no function runs after its key has reached the maximum of errors or crashes,
//	      and no key is exhausted before
//	I16   a call that a function enqueues in its transaction exists if and only if the
//	      transaction has committed
//	I17   a cached response was current at most the cache's maximum age ago
//	R3    a lost reply makes no actor a follower of itself
//
// The explorer also finds panics, actors that never end, deadlocks, dead processes that
// still change something, and batches that no store accepts.
package sim
