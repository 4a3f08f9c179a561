package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/semelgo/semel/store"
)

// Watch follows the head of the record. The client has one stream for all watches.
func (s *Store) Watch(ctx context.Context, id store.ID, token store.Token) error {
	head, prefix := s.key(id, fieldHead), appendToken(nil, token)
	reply, err := s.get(ctx, head)
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	if len(reply.Kvs) == 0 || !bytes.HasPrefix(reply.Kvs[0].Value, prefix) {
		return nil
	}
	ctx, end := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer end()
	for change := range s.client.Watch(ctx, head, clientv3.WithRev(reply.Header.Revision+1)) {
		if err := change.Err(); err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		for _, e := range change.Events { // a heartbeat keeps the token
			if e.Type == clientv3.EventTypeDelete || !bytes.HasPrefix(e.Kv.Value, prefix) {
				return nil
			}
		}
	}
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	return errWatch
}

var errWatch = errors.New("watch: the client has ended it")
