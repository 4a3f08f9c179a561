// Package engine runs operations once over a store. Package semel is its face for
// callers, package adapter the one for edges and workers, and package admin the one
// for operators.
//
// Its files are in levels. A file uses only files of its own level and of the levels
// above it in this list; a test compares the list with the code:
//
//   - definitions: policy, operation, call, fingerprint, key_time
//   - options: options
//   - records: batching, record, swap, writer
//   - core: core, unrecorded, context, singleflight, orphaned_claims
//   - attempt: attempt, lease, report, child_key
//   - ends: conclude, answer, tx_end, end, prepare
//   - claims: claim, follow, heal, abandoned_claim
//   - calls: in_tx, inline, inline_commit, do, do_batch, enqueue, issue
//   - workers: cancel_requests, renew, dequeue, complete_many, fenced_tx
//   - operators: admin, redrive, cancel, sweep
//   - engine: engine
package engine
