// Package servers gives tests the stores without transactions that are servers.
package servers

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"testing"

	driver "github.com/redis/go-redis/v9"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/etcd"
	"github.com/semelgo/semel/store/redis"
)

// Place is where records are. It is plain data, so that a test can tell a process of it.
type Place struct {
	Engine  string // redis or etcd
	Address string // host and port, or a URL
	Prefix  string // begins all keys
}

// Redis returns a place on the Redis that tests share.
func Redis(tb testing.TB) Place {
	tb.Helper()
	return Place{"redis", realtest.Redis(tb).Addr(), "t_" + rand.Text()}
}

// Etcd returns a place on the etcd that tests share, which has one member.
func Etcd(tb testing.TB) Place {
	tb.Helper()
	return Place{"etcd", realtest.Etcd(tb).URL(), rand.Text()}
}

// RedisWrites matches the call of a function of the Redis store that changes records.
func RedisWrites(request []byte) bool {
	call, isCall := bytes.CutPrefix(request, []byte("FCALL semel_")) // and then the digest of the library
	_, call, _ = bytes.Cut(call, []byte("_"))
	name, _, _ := bytes.Cut(call, []byte(" "))
	return isCall && slices.Contains([]string{"swap", "note", "purge", "dequeue", "take"}, string(name))
}

// EtcdWrites matches a transaction of the etcd store that changes records.
func EtcdWrites(request []byte) bool {
	body, isTxn := bytes.CutPrefix(request, []byte("/etcdserverpb.KV/Txn "))
	var txn etcdserverpb.TxnRequest
	const head = 5 // of a message of gRPC
	// The client's versions differ in how a message is decoded, except in this way.
	if !isTxn || len(body) < head || proto.Unmarshal(body[head:], protoadapt.MessageV2Of(&txn)) != nil {
		return false
	}
	return slices.ContainsFunc(txn.Success, func(op *etcdserverpb.RequestOp) bool { return op.GetRequestTxn() != nil })
}

// Open connects to the place.
func (p Place) Open() (s store.Store, end func() error, err error) {
	switch p.Engine {
	case "redis":
		client := driver.NewClient(&driver.Options{Addr: p.Address})
		s, err := redis.New(client, redis.Options{Prefix: p.Prefix})
		return s, client.Close, err
	case "etcd":
		client, err := realtest.NewEtcdClient(p.Address)
		if err != nil {
			return nil, nil, fmt.Errorf("connect to etcd: %w", err)
		}
		s, err := etcd.New(client, etcd.Options{Prefix: p.Prefix})
		return s, client.Close, err
	}
	return nil, nil, errors.New("there is no engine " + p.Engine)
}

// Store returns a store of the place, which is closed at the end of the test.
func (p Place) Store(tb testing.TB) store.Store {
	tb.Helper()
	s, end, err := p.Open()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = end() })
	return s
}
