package etcd

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/semelgo/semel/store"
)

// Purge removes the records that expired first, up to 50 with one request. A record that was
// changed since it was read stays.
func (s *Store) Purge(ctx context.Context, limit int) (int, error) {
	removed := 0
	for removed < limit {
		n, seen, err := s.purgePage(ctx, min(purgePage, limit-removed))
		if err != nil {
			return removed, fmt.Errorf("purge: %w", err)
		}
		removed += n
		if seen == 0 {
			break
		}
	}
	return removed, nil
}

const purgePage = 50

// purgePage looks at the first entries of the index and returns how many records it has
// removed, and how many entries.
func (s *Store) purgePage(ctx context.Context, limit int) (removed, entries int, err error) {
	now := s.clock()
	begin := s.prefix + indexExpiring
	reply, err := s.get(ctx, begin, clientv3.WithRange(string(appendTime([]byte(begin), now))), clientv3.WithLimit(int64(limit)))
	if err != nil || len(reply.Kvs) == 0 {
		return 0, 0, err
	}
	ids := make([]store.ID, len(reply.Kvs))
	heads := make([]clientv3.Op, len(ids))
	for i, kv := range reply.Kvs {
		key := kv.Key[len(begin):]
		if len(key) != timeSize+idSize {
			return 0, 0, errRecord
		}
		ids[i] = store.ID(key[timeSize:])
		heads[i] = clientv3.OpGet(s.key(ids[i], fieldHead))
	}
	current, err := s.txn(ctx, heads)
	if err != nil {
		return 0, 0, err
	}
	removes := make([]bool, len(ids))
	ops := make([]clientv3.Op, len(ids))
	for i, id := range ids {
		var revision, expire int64
		if kvs := current.Responses[i].GetResponseRange().Kvs; len(kvs) == 1 {
			if len(kvs[0].Value) != headSize {
				return 0, 0, errRecord
			}
			revision, expire = kvs[0].ModRevision, readTime(kvs[0].Value[tokenSize+timeSize:])
		}
		entry := string(reply.Kvs[i].Key)
		then := []clientv3.Op{clientv3.OpDelete(entry)}
		if entry == s.expireKey(expire, id) {
			removes[i] = true
			then = append(then, clientv3.OpDelete(s.key(id, ""), clientv3.WithPrefix()), clientv3.OpDelete(s.stateKey(store.Pending, id)))
		}
		// An entry whose time differs from the record's is left over from an earlier change.
		same := clientv3.Compare(clientv3.ModRevision(s.key(id, fieldHead)), "=", revision)
		ops[i] = clientv3.OpTxn([]clientv3.Cmp{same}, then, nil)
	}
	done, err := s.txn(ctx, ops)
	if err != nil {
		return 0, 0, err
	}
	for i := range ids {
		if done.Responses[i].GetResponseTxn().Succeeded {
			entries++
			if removes[i] {
				removed++
			}
		}
	}
	return removed, entries, nil
}
