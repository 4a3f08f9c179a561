package semelhttp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

var createGroup = semel.Define("create_group", semel.OperationOptions[semelhttp.Request]{})

// scope stands for authentication that has already happened.
func scope(r *http.Request) (semel.Scope, error) {
	return semel.ScopeOf(r.Header.Get("X-User")), nil
}

// The middleware opens the transaction, the handler takes it, and the response
// commits with the handler's writes.
func ExampleAtomic() {
	engine, err := semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure})
	if err != nil {
		panic(err)
	}
	once, err := semelhttp.Atomic(engine, createGroup, semelhttp.Options{ScopeFunc: scope})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /problems/", semelhttp.Problems())
	mux.Handle("POST /groups", once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tx, _ := semel.TxOf(r.Context(), engine)
		if err := tx.Put("group/1", []byte("gophers")); err != nil {
			http.Error(w, "try again", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Location", "/groups/1")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, "group 1")
	})))
	twice(mux)
	// Output:
	// 201 /groups/1 "group 1" replayed: ""
	// 201 /groups/1 "group 1" replayed: "true"
}

var payInvoice = semel.Define("pay_invoice", semel.OperationOptions[semelhttp.Request]{Policy: semel.Atomic()})

// The key is claimed first. The handler may take its time, and then commits its
// writes and its response together.
func ExampleMiddleware() {
	engine, err := semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure})
	if err != nil {
		panic(err)
	}
	once, err := semelhttp.Middleware(engine, payInvoice, semelhttp.Options{ScopeFunc: scope})
	if err != nil {
		panic(err)
	}
	twice(once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := semel.InTx(r.Context(), engine, func(_ context.Context, tx *memory.Tx) (struct{}, error) {
			if err := tx.Put("invoice/1", []byte("paid")); err != nil {
				return struct{}{}, err
			}
			w.Header().Set("Location", "/invoices/1")
			w.WriteHeader(http.StatusOK)
			_, err := io.WriteString(w, "paid")
			return struct{}{}, err
		})
		if err != nil {
			http.Error(w, "try again", http.StatusInternalServerError)
		}
	})))
	// Output:
	// 200 /invoices/1 "paid" replayed: ""
	// 200 /invoices/1 "paid" replayed: "true"
}

type newUser struct {
	Name string `json:"name"`
}

type user struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
}

var createUser = semel.Define("create_user", semel.OperationOptions[newUser]{})

// The operation returns a value, and the edge renders it, for the first caller
// as for the last.
func ExampleHandle() {
	engine, err := semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure})
	if err != nil {
		panic(err)
	}
	handler, err := semelhttp.Handle(semelhttp.Endpoint[newUser, user]{
		Operation: createUser,
		Decode: func(r *http.Request) (in newUser, err error) {
			err = json.NewDecoder(r.Body).Decode(&in)
			return in, err
		},
		Run: func(ctx context.Context, c semel.Call, in newUser) (user, bool, error) {
			return semel.DoTx(ctx, engine, c, func(_ context.Context, tx *memory.Tx) (user, error) {
				return user{ID: 7, Name: in.Name}, tx.Put("user/7", []byte(in.Name))
			})
		},
		Render: func(w http.ResponseWriter, _ *http.Request, u user) {
			w.Header().Set("Location", fmt.Sprint("/users/", u.ID))
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, "%s is user %d", u.Name, u.ID)
		},
	}, semelhttp.Options{ScopeFunc: scope})
	if err != nil {
		panic(err)
	}
	twice(handler)
	// Output:
	// 201 /users/7 "gophers is user 7" replayed: ""
	// 201 /users/7 "gophers is user 7" replayed: "true"
}

// twice sends one request two times and prints the answers.
func twice(h http.Handler) {
	srv := httptest.NewServer(h)
	defer srv.Close()
	for range 2 {
		r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, srv.URL+"/groups", strings.NewReader(`{"name":"gophers"}`))
		if err != nil {
			panic(err)
		}
		r.Header.Set("X-User", "ann")
		r.Header.Set("Idempotency-Key", `"8e03978e-40d5-43e8-bc93-6894a57f9324"`)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			panic(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		fmt.Printf("%d %s %q replayed: %q\n", resp.StatusCode, resp.Header.Get("Location"), body, resp.Header.Get("Idempotent-Replayed"))
	}
}
