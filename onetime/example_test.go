package onetime_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/onetime"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// Draft is what the shop knows when it shows the form.
type Draft struct{ Cart string }

// Define a purpose once, as a package variable.
var placeOrder = onetime.Define[Draft]("place_order", onetime.Options{})

// A form is sent three times: twice by its user, and once by another user.
func Example() {
	engine, err := semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure})
	if err != nil {
		panic(err)
	}
	ctx, ann, bob := context.Background(), semel.ScopeOf("ann"), semel.ScopeOf("bob")

	// The page with the form, for Ann.
	token, err := placeOrder.Issue(ctx, engine, ann, time.Hour, Draft{Cart: "c1"})
	if err != nil {
		panic(err)
	}

	// The submits.
	for _, user := range []semel.Scope{ann, ann, bob} {
		order, replayed, err := onetime.ConsumeTx(ctx, placeOrder, engine, user, token, func(_ context.Context, tx *memory.Tx, d Draft) (string, error) {
			return "order of " + d.Cart, tx.Put("orders/"+d.Cart, []byte("placed"))
		})
		switch {
		case errors.Is(err, onetime.ErrUnknown), errors.Is(err, onetime.ErrExpired):
			fmt.Println("show a new form")
		case err != nil:
			fmt.Println(err)
		default:
			fmt.Println(order, replayed)
		}
	}
	// Output:
	// order of c1 false
	// order of c1 true
	// show a new form
}
