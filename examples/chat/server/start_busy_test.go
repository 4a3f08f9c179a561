package server_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
)

// lateStore fails the first times that it is asked for its capabilities.
type lateStore struct {
	outboxed

	errs []error
}

func (s *lateStore) Capabilities(ctx context.Context) (store.Capabilities, error) {
	if len(s.errs) == 0 {
		return s.TxStore.Capabilities(ctx)
	}
	err := s.errs[0]
	s.errs = s.errs[1:]
	return store.Capabilities{}, err
}

// TestStartWaitsForItsDatabases: while a server starts, its database is locked or slow.
func TestStartWaitsForItsDatabases(t *testing.T) {
	t.Parallel()
	late := func(s store.TxStore[chatdb.Tx]) store.TxStore[chatdb.Tx] {
		return &lateStore{outboxed{s}, []error{fmt.Errorf("prepare: %w", sqlite.ErrBusy), context.DeadlineExceeded}}
	}
	s := serveLocal(t, server.Hooks{Records: late, Queue: late}, newFiles(t, inline).args(time.Minute)...)
	owner := s.signIn(t, "owner")
	s.settled(t, creation(owner, "k", "crew")).want(t, 201, "")
}
