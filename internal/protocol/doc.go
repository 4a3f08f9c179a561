// Package protocol decides. It is a set of pure functions over values: they read no
// clock, call no store and draw no random numbers, so tests run them over all
// inputs.
//
//   - [Next] decides what an event does to the current record. Every write of Semel
//     is one of its changes, and [Transitions] lists them.
//
// docs/protocol.md describes the states and the rules.
package protocol
