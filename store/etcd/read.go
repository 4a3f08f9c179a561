package etcd

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/semelgo/semel/store"
)

// Get reads up to 100 records with one request.
func (s *Store) Get(ctx context.Context, ids []store.ID) ([]store.SwapResult, error) {
	results := make([]store.SwapResult, 0, len(ids))
	for page := range slices.Chunk(ids, maxBatch) {
		ops := make([]clientv3.Op, len(page))
		for i, id := range page {
			ops[i] = s.read(id)
		}
		reply, err := s.txn(ctx, ops)
		if err != nil {
			return nil, fmt.Errorf("get: %w", err)
		}
		now := s.clock()
		for i, id := range page {
			result, err := readCurrent(reply.Responses[i].GetResponseRange(), id, now)
			if err != nil {
				return nil, fmt.Errorf("get: %w", err)
			}
			results = append(results, result)
		}
	}
	return results, nil
}

// Scan reads pages of at most 100 records, until enough records match q.
func (s *Store) Scan(ctx context.Context, q store.Query) ([]store.Record, error) {
	list := s.scanByID
	if q.Due {
		list = s.scanDue
	}
	skip, records := max(q.Skip, 0), []store.Record(nil)
	err := list(ctx, q, func(r *store.Record) bool {
		if q.State != store.Absent && r.State != q.State || q.Operation != "" && r.Operation != q.Operation {
			return true
		}
		if skip > 0 {
			skip--
			return true
		}
		records = append(records, *r)
		return len(records) < q.PageSize()
	})
	if err != nil {
		return nil, fmt.Errorf("scan: %w", err)
	}
	return records, nil
}

// scanByID calls fn with the records after q.After, until it returns false.
func (s *Store) scanByID(ctx context.Context, q store.Query, fn func(*store.Record) bool) error {
	begin := s.recordKeys()
	end := clientv3.GetPrefixRangeEnd(begin)
	if q.After != (store.ID{}) {
		begin = clientv3.GetPrefixRangeEnd(s.key(q.After, ""))
	}
	for {
		reply, err := s.get(ctx, begin, clientv3.WithRange(end), clientv3.WithLimit(int64(fields*min(maxBatch, q.PageSize()+1))))
		if err != nil {
			return fmt.Errorf("list records: %w", err)
		}
		now := s.clock()
		for kvs := reply.Kvs; len(kvs) > 0; {
			id, ok := s.idOf(kvs[0].Key)
			if !ok {
				return errRecord
			}
			n := 1
			for n < len(kvs) && bytes.HasPrefix(kvs[n].Key, []byte(s.key(id, ""))) {
				n++
			}
			if n == len(kvs) && reply.More { // the rest of this record is on the next page
				begin = s.key(id, "")
				break
			}
			r, err := readRecord(kvs[:n], id, now)
			if err != nil {
				return err
			}
			if !fn(r) {
				return nil
			}
			kvs, begin = kvs[n:], clientv3.GetPrefixRangeEnd(s.key(id, ""))
		}
		if !reply.More {
			return nil
		}
	}
}

// idOf returns the ID in a key of a record.
func (s *Store) idOf(key []byte) (store.ID, bool) {
	rest := key[len(s.recordKeys()):]
	if len(rest) != idSize+2 {
		return store.ID{}, false
	}
	return store.ID(rest[:idSize]), true
}

// indexEntry is an entry of the index of a state.
type indexEntry struct {
	due int64
	id  store.ID
}

// scanDue calls fn with the due records, those that have been due for longest first, until it
// returns false.
func (s *Store) scanDue(ctx context.Context, q store.Query, fn func(*store.Record) bool) error {
	var all []indexEntry
	for _, state := range []store.State{store.Pending, store.InProgress} {
		if q.State != store.Absent && q.State != state {
			continue
		}
		var err error
		if all, err = s.appendDue(ctx, all, state); err != nil {
			return err
		}
	}
	slices.SortFunc(all, func(a, b indexEntry) int {
		return cmp.Or(cmp.Compare(a.due, b.due), bytes.Compare(a.id[:], b.id[:]))
	})
	for page := range slices.Chunk(all, maxBatch) {
		ids := make([]store.ID, len(page))
		for i, d := range page {
			ids[i] = d.id
		}
		results, err := s.Get(ctx, ids)
		if err != nil {
			return err
		}
		for _, result := range results {
			r := result.Record
			if r == nil || s.stateKey(r.State, r.ID) == "" || r.Due > 0 { // changed meanwhile
				continue
			}
			if !fn(r) {
				return nil
			}
		}
	}
	return nil
}

// appendDue appends the due entries of the index of a state.
func (s *Store) appendDue(ctx context.Context, all []indexEntry, state store.State) ([]indexEntry, error) {
	begin := s.stateKey(state, store.ID{})
	begin = begin[:len(begin)-idSize]
	now := s.clock()
	err := s.page(ctx, begin, clientv3.GetPrefixRangeEnd(begin), func(kv *mvccpb.KeyValue) error {
		id := kv.Key[len(begin):]
		if len(id) != idSize || len(kv.Value) != timeSize {
			return errRecord
		}
		if due := readTime(kv.Value); due <= now {
			all = append(all, indexEntry{due, store.ID(id)})
		}
		return nil
	})
	return all, err
}

// indexPage is the number of entries of an index that are read with one request.
const indexPage = 5000

// page calls fn with the keys from begin to end, in order.
func (s *Store) page(ctx context.Context, begin, end string, fn func(*mvccpb.KeyValue) error) error {
	for {
		reply, err := s.get(ctx, begin, clientv3.WithRange(end), clientv3.WithLimit(indexPage))
		if err != nil {
			return fmt.Errorf("read an index: %w", err)
		}
		for _, kv := range reply.Kvs {
			if err := fn(kv); err != nil {
				return err
			}
			begin = string(kv.Key) + "\x00"
		}
		if !reply.More {
			return nil
		}
	}
}
