// Package protocol decides. It is a set of pure functions over values: they read no
// clock, call no store and draw no random numbers, so tests run them over all
// inputs.
//
//   - [Next] decides what an event does to the current record. Every write of Semel
//     is one of its changes, and [Transitions] lists them.
//   - [Conclude] decides how an attempt ends its record: which step to request, and
//     what to store.
//   - [Classify] decides how a transaction ended, from what the store and the handler
//     report.
//   - [AnswerTo] decides which answer a caller gets about a record, and [LateEnd] what
//     became of an end that was recorded late.
//
// No other package decides by state, policy or verdict what a record becomes or what
// an error means. docs/protocol.md describes the states and the rules.
package protocol
