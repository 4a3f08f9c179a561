package shop_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/check"
)

// TestKilledAtRandom runs two processes of the shop, and the payment service as a third one. In each
// round customers pay for new orders, and a process of the shop is killed with kill -9 while it charges
// a customer or sends a mail, in every second round the payment service too, while it charges; and
// started again. The customers retry until they have an answer. The rounds go on until a kill has
// interrupted a payment. In the end each order was charged, recorded, mailed and shipped once,
// although no table has a unique constraint.
func TestKilledAtRandom(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	const customers = 4
	w := newTown(t)
	shops := []*process{newProcess(t, "shop", w.args...), newProcess(t, "shop", w.args...)}
	c := newClient(t, shops...)
	n, kills := rounds(5), 0
	var (
		mu      sync.Mutex
		orders  []string
		answers = make(map[string]string)
	)
	for ; kills < n || w.repeated(t, "pay_order") == 0; kills++ {
		var all sync.WaitGroup
		w.forgetRequests()
		for customer := range customers {
			order := fmt.Sprintf("o-%d-%d", kills, customer)
			orders = append(orders, order)
			all.Go(func() {
				a := c.pay(t.Context(), t, order, bodyOf(order))
				check.Equal(t, a.status, http.StatusCreated, "%s:: %s", order, a.body)
				mu.Lock()
				defer mu.Unlock()
				answers[order] = a.body
			})
		}
		w.awaitRequest(t, []string{"charge", "mail"}[kills%2])
		victims := []*process{shops[rand.N(len(shops))]}
		if kills%2 == 0 {
			victims = append(victims, w.payments)
			rand.Shuffle(2, func(i, j int) { victims[i], victims[j] = victims[j], victims[i] })
		}
		for _, victim := range victims {
			pauseRandomly(t)
			victim.Kill()
		}
		for _, victim := range victims {
			victim.Start(t)
		}
		all.Wait()
	}
	w.settled(t, len(orders))
	for _, order := range orders {
		if a := c.pay(t.Context(), t, order, bodyOf(order)); !a.replayed || a.body != answers[order] {
			t.Errorf("%s: paid again, got %d %s, replayed %v, want %s", order, a.status, a.body, a.replayed, answers[order])
		}
	}
	w.account(t, orders...)
	t.Logf("%d kills, %d orders, %d of them took more than one attempt to pay, %d receipts more than one to send",
		kills, len(orders), w.repeated(t, "pay_order"), w.repeated(t, "send_receipt"))
}

// pauseRandomly lets the kill happen at any point of the request.
func pauseRandomly(t *testing.T) {
	t.Helper()
	select {
	case <-time.After(rand.N(50 * time.Millisecond)):
	case <-t.Context().Done():
	}
}

func bodyOf(order string) string {
	return fmt.Sprintf(`{"order":%q,"amount":500,"currency":"EUR","email":"ada@example.com"}`, order)
}

// forgetRequests drops what the services have seen until now.
func (w *environment) forgetRequests() {
	for {
		select {
		case <-w.requests:
		default:
			return
		}
	}
}

// awaitRequest waits until one of the services gets a request.
func (w *environment) awaitRequest(t *testing.T, name string) {
	t.Helper()
	limit := time.After(patience)
	for {
		select {
		case got := <-w.requests:
			if got == name {
				return
			}
		case <-limit:
			t.Fatalf("no %s was asked for", name)
		}
	}
}
