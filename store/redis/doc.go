// Package redis keeps records in Redis 7.0 or newer, or in Valkey 8: one server, a
// primary with replicas under Sentinel, or a Redis Cluster. [New] takes a client of
// github.com/redis/go-redis/v9, which may be shared with the application. The store has
// no transactions, so an engine over it is made with semel.NewRunner.
//
// # Functions
//
// The store's work is a library of functions that run in the server, each atomically. Its
// name is semel_ and a digest of its text, so that programs of different versions use one
// server at the same time. The store loads the library where it is missing, also after
// FUNCTION FLUSH, FLUSHALL or a failover. FUNCTION DELETE may remove the libraries of older
// versions.
//
// One call does at most a few milliseconds of work, because a server does nothing else
// meanwhile: at most 250 changes with 4 MiB, or a page of 1000 records.
//
// # Keys
//
// All keys begin with [Options].Prefix and a number in braces, as in semel:{0}:r:…, so
// that all keys with one number are on one node of a cluster. [Options].Shards is how
// many numbers there are. Several applications share a server if they have different
// prefixes.
//
// # What the records survive
//
// Redis confirms a change after it is on disk only with "appendonly yes" and
// "appendfsync always". [Store.Capabilities] reads these settings, and rejects a server
// that may evict records.
//
// Replication is asynchronous, so a failover takes back confirmed changes. With
// [Options].Replicas the store waits until that many replicas have each change (WAIT). If
// they all have "appendfsync always" too, no failover to one of them loses a confirmed
// change: a replica confirms a change after its own file is on disk. The number must be
// that of all replicas which may be promoted. The store then confirms nothing while one of
// them does not respond. WAITAOF has the same guarantee, but takes up to a second, because
// a replica reports what is on its disk once a second.
//
// A change that is found applied, and a final state that is read, are confirmed in the
// same way: the store writes a small key behind them and waits for it.
//
// # Cluster
//
// While a slot moves to another node, calls for its records fail with an error of the
// server, and nothing is lost or created twice. The store finds the new node by itself.
//
// # Rights
//
// A user of an ACL needs the keys of the prefix and these commands:
//
//	ACL SETUSER semel on >password resetkeys ~semel:* resetchannels -@all
//	  +fcall +fcall_ro +function|load +wait +info +config|get +ping +hello +client|setname +cluster|slots
//	  +time +get +mget +getrange +set +mset +setrange +del +zadd +zrem +zrangebyscore +zrangebylex
//	  +sadd +srem +smembers +lrange +rpush
//
// On Redis 7.2 or newer and on Valkey, the client also sends client|setinfo, which may fail.
// Without config|get the store cannot see appendfsync, and promises no more than the end of
// the server's process. For TLS, set TLSConfig in the options of the client.
package redis
