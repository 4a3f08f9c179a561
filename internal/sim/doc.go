// Package sim explores Semel's protocol exhaustively. It runs the real engine,
// not a model of it: callers, sweepers and healers are coroutines that stop
// before every call they make to a store or to the world outside, and a
// scheduler decides, at each stop, who goes on and what goes wrong. Every
// order of the steps, with every fault that the budget allows, is run once;
// after each step the invariants are checked against what is really true.
//
// A run that breaks an invariant is printed step by step, and as one line that
// repeats it.
package sim
