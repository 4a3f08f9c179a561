// Package engine runs operations once over a store. Package semel is its face for
// callers, package adapter the one for edges and workers, and package admin the one
// for operators.
//
// Its files are in levels; a file uses those of its own level and of levels above it
// in this list:
//
//   - definitions: operation, call, fingerprint, input, generation, policy, retry
//   - records: record, reader, writer, swap, batching, read_hint
//   - core: core, options, times, unrecorded, operation_context
//   - attempt: attempt, right, lease, report
//   - its end: proof, retry_decision, result, conclude, tx_end, complete, end, prepare
//   - claim: claim, follow, heal, generation_read, abandoned_claim
//   - calls: do, in_tx, inline, do_batch, enqueue, dequeue, complete_many, renew
//   - operators: admin, redrive, cancel, sweep, dead_letters, settle
//   - engine: New and Close
package engine
