// Package engine runs operations once over a store. Package semel is its face for
// callers, package adapter the one for edges and workers, and package admin the one
// for operators.
//
// Its files are in levels. A file uses only files of its own level and of the levels
// above it in this list; a test compares the list with the code:
//
//   - definitions: durations, pause, owner, scope, policy, retry, operation, call,
//     fingerprint, input, generation, key_time, wait_context, record
//   - options: options, times, emit
//   - records: batching, read_hint, reader, swap, writer
//   - core: core, unrecorded, record_late, operation_context, begin_timeout,
//     conflict, singleflight, orphaned_claims
//   - attempt: attempt, attempt_tx, right, lease, report, child_key, proof
//   - ends: retry_decision, result, conclude, answer, tx_end, complete, end, prepare
//   - claims: key_expiry, claim, follow, generation_read, heal, abandoned_claim
//   - calls: in_tx, inline, inline_commit, inline_successor, run_batch, do,
//     do_batch, enqueue, cached_outcome
//   - workers: cancel_requests, renew, dequeue, dequeue_orphans, worker_check,
//     complete_many
//   - operators: admin, redrive, cancel, dead_letters, settle, survive, sweep,
//     sweeper
//   - engine: engine
package engine
