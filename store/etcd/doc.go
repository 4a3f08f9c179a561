// Package etcd keeps records in an etcd cluster of version 3.4 or newer. [New] takes a client
// of go.etcd.io/etcd/client/v3, which may be shared with the application. The store has no
// transactions, so an engine over it is made with semel.NewRunner.
//
// # Guarantees
//
// All changes of a Swap are one entry of the Raft log: each of them is a nested transaction
// with its own comparison. Swap and Get are linearizable. The records survive a failover if
// the cluster has at least three voting members, which [Store.Capabilities] reads. The store
// cannot see whether a member runs with --unsafe-no-fsync; do not use that flag.
//
// A caller that waits for another process watches the record, so that it is answered when
// that process ends the attempt. Operators' changes keep their notes in the entry of the change.
//
// A request that has no answer for five seconds fails: the cluster has no majority, or its
// leader died. The changes may have been applied, and can be repeated.
//
// # Clocks
//
// etcd has no clock. Due, Expire, Age and Since are compared with the clock of the calling
// process (ClientClocks), so the clocks of all processes must be synchronized. Set
// [Options].Skew to the largest difference that they may have. If they differ by more, a
// process may take over an attempt whose leader has not noticed that its lease is over. The
// fencing token protects the record, and the operation's policy the effect, as after a pause.
//
// # Limits
//
// The limits fit the defaults of the server (--max-txn-ops 128, --max-request-bytes 1.5 MiB):
// 100 changes, 512 KiB for an input or an outcome, and 1 MiB for all of them in one Swap.
// Do not set the flags to less.
//
// A Scan with Due reads the IDs of all Pending and InProgress records, so its time grows with
// their number, but not with the number of final records. The store is meant for small results
// and for queues of some thousand waiting records. It has no Dequeue of its own, because etcd
// cannot select records: workers scan, and then claim with Swap. It does not count records.
//
// # Operation
//
// etcd keeps old revisions until they are compacted. Start it with
// --auto-compaction-mode=periodic --auto-compaction-retention=10m, and defragment the members
// one after another when their files are much larger than the data. A cluster above its quota
// (--quota-backend-bytes, 2 GiB by default) rejects all changes, those of Purge included.
//
// Set DialKeepAliveTime and DialKeepAliveTimeout in the client's configuration, so that it
// leaves a member that no longer answers. A user with authentication needs the permission
// readwrite for the keys that begin with [Options].Prefix and a slash.
package etcd
