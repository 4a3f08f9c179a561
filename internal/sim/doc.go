// Package sim explores Semel's protocol exhaustively. It runs the real engine,
// not a model of it: callers, workers, sweepers, purgers and people are coroutines
// that stop before every call they make to a store or to the world outside, and a
// scheduler decides, at each stop, who goes on and what goes wrong. Every
// order of the steps, with every fault that the budget allows, is run once;
// after each step the invariants are checked against what is really true.
//
// A run that breaks an invariant is shortened, told step by step, and given as
// one line that repeats it:
//
//	go run ./internal/sim/cmd/explore -replay 'leased/faults:00843'
//
// # What may happen
//
// An actor goes on with its call; the call never arrives, or its answer is lost,
// or it arrives late; a commit is refused, or given up for others, or has no answer
// and is decided later, with its last statement carried out or still on its way;
// an actor dies; a lease ends; its leader renews it all the same; what waits is
// due; a retention ends; the receiver of an effect refuses it. Time does not pass
// otherwise, and no timer of the engine goes off: the heartbeats of callers are
// made by the scheduler, those of workers by the workers, and waiting followers are
// not explored. A leader that polls a busy record is modelled as waiting for it. A
// Swap of several records is carried out one after the other, and others may come
// between; a Dequeue is one step. Who goes first of what waits is not modelled.
//
// Most actors are a process each. In plans that have callers together, these share
// an engine, and their changes go to the store together, through the lane that the
// engine really uses: who asks for the others, and who gives back what a caller left
// behind that gave up, are actors of their own, that go on, lose a reply and die as
// others do. Such a batch is one step: all of it arrives or nothing, and an answer
// that is lost is lost to all. A caller gives up only while its claim is on its way.
// In these processes what is recorded late is explored too, in others it is given
// up. Callers of one key share a process only under Heal, where nobody follows
// without asking. One batch is under way at a time, and how many wait is not
// bounded.
//
// Where a plan says so, such a batch is a transaction that others join until its commit:
// it is lost before it has written those that came, or those that joined; it is Busy as
// a whole; its commit has no answer and is decided later. What it has written is held
// until then, record by record: a store that holds all of them at once shows less. How
// many may join is not bounded, and who asks again for what is still in it waits for it.
//
// The memory of final records gets older where a plan says so, in halves of
// its age.
//
// Statements that are handed over together are one step, with the commit behind them.
// What has no answer is on its way until it arrives, or never does, and no retention
// passes meanwhile. A function may enqueue another call in its own transaction: others
// find that record Busy until it has ended.
//
// A state that was seen before ends a run. What an actor does next depends on
// the answers it got and on nothing else, so their digest stands for the actor,
// and the real code needs no snapshots. What actors of one process share depends
// on that, and on the order in which they wait and have given up.
//
// # Invariants
//
//	I1    a key has one effect; under AtLeastOnce, at most one for each attempt
//	I2    a Failed record has no effect, for ever
//	I2t   who was told failed was told what stood, and there is no effect; who was
//	      told that nothing happened has had none
//	I2k   nor has an earlier attempt of that key
//	I3    a Succeeded record has an effect
//	I3t   who was told ok was told an effect that is there
//	I4    what is told as ok is, byte for byte, what the record says
//	I5    the attempt never goes back, and each has one owner
//	I6    what is final does not change, unless a person sends round again what
//	      failed under a key that the system owns
//	I6p   a purge takes what is past its retention, and nothing unfinished
//	I7    only its leader changes an attempt, but for what expiry and evidence allow
//	I8    no answer is given to another request
//	I9    what expiry allows comes after the expiry, as the leader last set it, and
//	      what waits is claimed when it is due
//	I10   no answer crosses scopes
//	I11   no effect without a claim that was in force
//	I12   when faults stop, a retry settles the key as the policy says; and so do, of
//	      a key that the system owns, a sweeper and a worker
//	I13   what was enqueued is there, and can be run, until it is done
//	I14   who gave up before it led leaves no claim behind, but for a takeover that
//	      had no answer and comes in force later
//	I15   no function is run once its key has had as many errors or crashes as it may,
//	      and no key is given up before
//	I16   what a function enqueues in its transaction is there when that has committed,
//	      and not otherwise
//	I17   what memory tells stood a moment ago, and no longer ago than its age
//	R3    a lost reply makes nobody a follower of itself
//
// Also found are panics, actors that go on for ever or that nobody lets go on,
// dead processes that still change something, and batches that no store takes.
package sim
