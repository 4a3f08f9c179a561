package etcd

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/semelgo/semel/store"
)

// Swap applies all changes with one request. It fails as a whole, and has then written
// nothing, for a batch that the contract forbids.
func (s *Store) Swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	if err := store.CheckBatch(changes, maxBatch); err != nil {
		return nil, fmt.Errorf("swap: %w", err)
	}
	if err := store.CheckBytes(changes, maxBytes); err != nil {
		return nil, fmt.Errorf("swap: %w", err)
	}
	now := s.clock()
	results := make([]store.SwapResult, len(changes))
	var ops []clientv3.Op
	var places []int
	for i := range changes {
		c := &changes[i]
		if err := c.Check(maxOutcome); err != nil {
			results[i].Err = fmt.Errorf("swap %w", err)
			continue
		}
		ops, places = append(ops, s.change(c, now)), append(places, i)
	}
	if len(ops) == 0 {
		return results, nil
	}
	reply, err := s.txn(ctx, ops)
	if err != nil {
		return nil, fmt.Errorf("swap: %w", err)
	}
	for i, place := range places {
		if results[place], err = readResult(&changes[place], reply.Responses[i].GetResponseTxn(), now); err != nil {
			return nil, fmt.Errorf("swap: %w", err)
		}
	}
	return results, nil
}

// readResult reads the result of a change: that it was applied, or the current record.
func readResult(c *store.Change, reply *etcdserverpb.TxnResponse, now int64) (store.SwapResult, error) {
	if reply.Succeeded {
		return store.SwapResult{Token: c.To.Token}, nil
	}
	result, err := readCurrent(reply.Responses[0].GetResponseRange(), c.To.ID, now)
	if result.Token == c.To.Token { // by an earlier call
		result.Record = nil
	}
	return result, err
}

func readCurrent(reply *etcdserverpb.RangeResponse, id store.ID, now int64) (store.SwapResult, error) {
	r, err := readRecord(reply.Kvs, id, now)
	if r == nil {
		return store.SwapResult{}, err
	}
	return store.SwapResult{Token: r.Token, Record: r}, nil
}

// change returns the transaction of one change, which also does more if the change is
// applied. The head begins with the token and the due time, so comparisons of its text test
// both without a read.
func (s *Store) change(c *store.Change, now int64, more ...clientv3.Op) clientv3.Op {
	head := s.key(c.To.ID, fieldHead)
	var conditions []clientv3.Cmp
	if c.If == (store.Token{}) {
		conditions = append(conditions, clientv3.Compare(clientv3.CreateRevision(head), "=", 0))
	} else {
		from := appendToken(nil, c.If)
		below := nextToken(from)
		if c.IfDue {
			below = appendTime(append([]byte(nil), from...), now+1)
		}
		conditions = append(conditions,
			clientv3.Compare(clientv3.Value(head), ">", string(from)), clientv3.Compare(clientv3.Value(head), "<", string(below)))
	}
	return clientv3.OpTxn(conditions, append(s.writes(c, now), more...), []clientv3.Op{s.read(c.To.ID)})
}

// read returns the operation that reads a record.
func (s *Store) read(id store.ID) clientv3.Op {
	return clientv3.OpGet(s.key(id, ""), clientv3.WithPrefix())
}

// writes returns what a change writes if it is applied.
func (s *Store) writes(c *store.Change, now int64) []clientv3.Op {
	to := &c.To
	var due, expire int64
	stateKey := s.stateKey(to.State, to.ID)
	if stateKey != "" {
		due = after(now, to.Due)
	}
	if to.State == store.InProgress {
		due += s.skew.Microseconds()
	}
	if to.Expire != 0 && !to.State.Unfinished() {
		expire = after(now, to.Expire)
	}
	var ops []clientv3.Op
	put := func(key string, value []byte) { ops = append(ops, clientv3.OpPut(key, string(value))) }
	put(s.key(to.ID, fieldHead), appendTime(appendTime(appendToken(nil, to.Token), due), expire))
	if stateKey != "" {
		put(stateKey, appendTime(nil, due))
	}
	if old := s.stateKey(c.If.State, to.ID); old != "" && old != stateKey {
		ops = append(ops, clientv3.OpDelete(old))
	}
	if expire != 0 {
		put(s.expireKey(expire, to.ID), nil)
	}
	if c.If == to.Token {
		return ops // a heartbeat changes only the times
	}
	tainted := byte(0)
	if to.Tainted {
		tainted = 1
	}
	put(s.key(to.ID, fieldChange), append(appendTime(nil, now), tainted))
	if c.If == (store.Token{}) {
		put(s.key(to.ID, fieldIdentity), identity(now, to))
	}
	if to.Input != nil {
		put(s.key(to.ID, fieldInput), to.Input)
	}
	if to.Outcome != nil {
		put(s.key(to.ID, fieldOutcome), to.Outcome)
	}
	return ops
}
