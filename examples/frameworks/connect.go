package frameworks

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/semelgo/semel/semelhttp"
)

// CreateOrder is a procedure whose request is the item, and whose response is the order's
// number. Your messages are generated ones.
const CreateOrder = "/shop.v1.OrderService/CreateOrder"

// Connect serves the shop by Connect.
func (s *Shop) Connect() http.Handler {
	create := func(ctx context.Context, r *connect.Request[wrapperspb.StringValue]) (*connect.Response[wrapperspb.Int64Value], error) {
		o, err := s.Create(ctx, Order{Shop: "books", Item: r.Msg.GetValue()})
		switch {
		case errors.Is(err, ErrSoldOut):
			return nil, connect.NewError(connect.CodeFailedPrecondition, err)
		case err != nil:
			return nil, err // CodeUnknown
		}
		return connect.NewResponse(wrapperspb.Int64(o.ID)), nil
	}
	mux := http.NewServeMux()
	handler := connect.NewUnaryHandler(CreateOrder, create, connect.WithInterceptors(connect.UnaryInterceptorFunc(Temporary)))
	mux.Handle(CreateOrder, authenticate(ConnectOnce(s.Once("create_order"), handler)))
	return mux
}

// Temporary replaces the codes Aborted and Canceled by Unavailable: they ask the client to try
// again, but their HTTP statuses are 409 and 499, which are stored as final answers.
func Temporary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		response, err := next(ctx, r)
		if code := connect.CodeOf(err); err != nil && (code == connect.CodeAborted || code == connect.CodeCanceled) {
			err = connect.NewError(connect.CodeUnavailable, err)
		}
		return response, err
	}
}

// ConnectOnce protects a unary procedure. It sends the problems of semelhttp as errors of
// Connect, with the codes that package semelgrpc uses. It refuses requests of gRPC: errors of
// gRPC have the HTTP status 200, so they would be stored as successes.
func ConnectOnce(once func(http.Handler) http.Handler, handler http.Handler) http.Handler {
	protected := once(handler)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(strings.ToLower(r.Header.Get("Content-Type")), "application/grpc") {
			_ = connect.NewErrorWriter().Write(w, r, connect.NewError(connect.CodeUnimplemented, errors.New("use the Connect protocol")))
			return
		}
		protected.ServeHTTP(&errorWriter{ResponseWriter: w, r: r}, r)
	})
}

type errorWriter struct {
	http.ResponseWriter

	r       *http.Request
	problem bool
}

func (w *errorWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *errorWriter) WriteHeader(status int) {
	if w.problem = w.Header().Get("Content-Type") == "application/problem+json"; !w.problem {
		w.ResponseWriter.WriteHeader(status)
	}
}

// Write gets a problem as a whole.
func (w *errorWriter) Write(b []byte) (int, error) {
	if !w.problem {
		return w.ResponseWriter.Write(b)
	}
	var p semelhttp.Problem
	if err := json.Unmarshal(b, &p); err != nil {
		return 0, err
	}
	w.Header().Del("Content-Length")
	return len(b), connect.NewErrorWriter().Write(w.ResponseWriter, w.r, connect.NewError(connectCode(p), errors.New(p.Error())))
}

func connectCode(p semelhttp.Problem) connect.Code {
	switch {
	case p.Code == "in_progress":
		return connect.CodeAborted
	case p.Status == http.StatusConflict: // outcome_unknown, result_unavailable
		return connect.CodeFailedPrecondition
	case p.Status == http.StatusUnauthorized:
		return connect.CodeUnauthenticated
	case p.Status == http.StatusForbidden:
		return connect.CodePermissionDenied
	case p.Status == http.StatusServiceUnavailable:
		return connect.CodeUnavailable
	case p.Status >= http.StatusInternalServerError:
		return connect.CodeInternal
	default: // key_reused, key_missing and the like
		return connect.CodeInvalidArgument
	}
}
