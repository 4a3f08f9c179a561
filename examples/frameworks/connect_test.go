package frameworks_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/semelgo/semel/examples/frameworks"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store/storetest"
)

// result is what a client of Connect gets.
type result struct {
	order    int64
	code     connect.Code // 0: no error
	replayed bool
}

func (s *shop) call(t *testing.T, user, key, item string, o ...connect.ClientOption) result {
	t.Helper()
	client := connect.NewClient[wrapperspb.StringValue, wrapperspb.Int64Value](s.client, s.url+frameworks.CreateOrder, o...)
	r := connect.NewRequest(wrapperspb.String(item))
	r.Header().Set("Idempotency-Key", key)
	r.Header().Set("X-User", user)
	response, err := client.CallUnary(t.Context(), r)
	if failure := new(connect.Error); errors.As(err, &failure) {
		return result{code: failure.Code(), replayed: failure.Meta().Get(semelhttp.HeaderReplayed) == "true"}
	}
	check.Require(t, err)
	return result{order: response.Msg.GetValue(), replayed: response.Header().Get(semelhttp.HeaderReplayed) == "true"}
}

func newConnectShop(t *testing.T) *shop {
	t.Helper()
	t.Parallel()
	return newShop(t, (*frameworks.Shop).Connect)
}

// TestConnectRetry: with each codec of the protocol, a retry gets the first response.
func TestConnectRetry(t *testing.T) {
	s := newConnectShop(t)
	for i, o := range [][]connect.ClientOption{nil, {connect.WithProtoJSON()}, {connect.WithSendGzip()}} {
		key := fmt.Sprint("key-", i)
		check.Equal(t, s.call(t, "ann", key, "book", o...), result{order: int64(i + 1)}, "the response")
		check.Equal(t, s.call(t, "ann", key, "book", o...), result{order: int64(i + 1), replayed: true}, "the retry")
	}
	check.Equal(t, s.orders(t), 3, "orders")
}

// TestConnectErrors: errors of the procedure are stored or not, as their codes say, and
// problems of semelhttp are errors of Connect.
func TestConnectErrors(t *testing.T) {
	s := newConnectShop(t)
	check.Equal(t, s.call(t, "ann", "key-1", "unicorn"), result{code: connect.CodeFailedPrecondition}, "a refusal")
	check.Equal(t, s.call(t, "ann", "key-1", "unicorn"), result{code: connect.CodeFailedPrecondition, replayed: true}, "its retry")
	check.Equal(t, s.call(t, "ann", "key-1", "book").code, connect.CodeInvalidArgument, "the key for another request")
	check.Equal(t, s.call(t, "ann", "", "book").code, connect.CodeInvalidArgument, "no key")
	check.Equal(t, s.call(t, "", "key-2", "book").code, connect.CodeUnauthenticated, "no user")
	check.Equal(t, s.call(t, "ann", "key-2", "book", connect.WithGRPCWeb()).code, connect.CodeUnimplemented, "gRPC-Web")

	s.faults.Decide(func(storetest.Call) storetest.Fault { return storetest.Refuse() })
	check.Equal(t, s.call(t, "ann", "key-2", "book").code, connect.CodeUnavailable, "the store is down")
	s.conflict()
	check.Equal(t, s.call(t, "ann", "key-2", "book"), result{order: 1}, "after a conflict")
	check.Equal(t, s.orders(t), 1, "orders")
}

// TestConnectCodes: a code that asks the client to try again is not stored, and every other
// one below 500 is.
func TestConnectCodes(t *testing.T) {
	t.Parallel()
	stored := map[connect.Code]bool{
		connect.CodeInvalidArgument: true, connect.CodeNotFound: true, connect.CodeAlreadyExists: true,
		connect.CodeFailedPrecondition: true, connect.CodeOutOfRange: true,
	}
	for code := connect.CodeCanceled; code <= connect.CodeUnauthenticated; code++ {
		t.Run(code.String(), func(t *testing.T) {
			t.Parallel()
			runs := 0
			s := newShop(t, func(s *frameworks.Shop) http.Handler { return failing(s, code, &runs) })
			first, again := s.call(t, "ann", "key-1", "book"), s.call(t, "ann", "key-1", "book")
			want := code
			if code == connect.CodeCanceled || code == connect.CodeAborted {
				want = connect.CodeUnavailable
			}
			check.Equal(t, first.code, want, "the code")
			check.Equal(t, again.code, want, "the code of the retry")
			check.Equal(t, again.replayed, stored[code], "replayed")
			check.Equal(t, runs == 1, stored[code], "run once")
		})
	}
}

// failing serves a procedure that returns an error with that code.
func failing(s *frameworks.Shop, code connect.Code, runs *int) http.Handler {
	fail := func(context.Context, *connect.Request[wrapperspb.StringValue]) (*connect.Response[wrapperspb.Int64Value], error) {
		*runs++
		return nil, connect.NewError(code, errors.New("no"))
	}
	handler := connect.NewUnaryHandler(frameworks.CreateOrder, fail, connect.WithInterceptors(connect.UnaryInterceptorFunc(frameworks.Temporary)))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		frameworks.ConnectOnce(s.Once("fails"), handler).ServeHTTP(w, frameworks.WithUser(r, "ann"))
	})
}
