package realtest_test

import (
	"bytes"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

// TestReplyOfEtcdIsDroppedOnce: the server executes the request, the client does not learn of
// it, and the next request is answered. A request that is cut off before it arrives is not
// executed.
func TestReplyOfEtcdIsDroppedOnce(t *testing.T) {
	t.Parallel()
	member := realtest.Etcd(t)
	p := realtest.NewHTTP2Proxy(t, member.Addr())
	c := check.Must(realtest.NewEtcdClient(p.URL(member.URL())))(t)
	t.Cleanup(func() { c.Close() })
	puts := func(request []byte) bool { return bytes.HasPrefix(request, []byte("/etcdserverpb.KV/Put ")) }
	large := string(bytes.Repeat([]byte("x"), 1<<20))
	for key, w := range map[string]struct {
		arm func(realtest.Match) *realtest.Fault
		put int64
	}{"lost reply": {p.EatReply, 1}, "lost request": {p.CutBefore, 0}} {
		fault := w.arm(puts)
		if _, err := c.Put(t.Context(), key, large); err == nil {
			t.Errorf("%s: the client got a reply", key)
		}
		fault.Wait(t)
		got, err := c.Get(t.Context(), key)
		if err != nil || got.Count != w.put {
			t.Errorf("%s: %v, %v, want %d keys", key, got, err, w.put)
		}
		if _, err := c.Put(t.Context(), key, large); err != nil {
			t.Errorf("%s: the second Put = %v", key, err)
		}
	}
}
