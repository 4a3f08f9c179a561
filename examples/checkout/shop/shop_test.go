package shop_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/semelgo/semel/examples/checkout/shop"
	"github.com/semelgo/semel/internal/check"
)

const five = `{"order":"o-1","amount":500,"currency":"EUR","email":"ada@example.com"}`

// TestCheckout pays for an order, repeats the request before and after a restart, and
// has one that is declined.
func TestCheckout(t *testing.T) {
	w := newTown(t)
	p := newProcess(t, "shop", w.args...)
	c := newClient(t, p)
	first := c.pay(t.Context(), t, "o-1", five)
	if first.status != http.StatusCreated || first.replayed || !strings.Contains(first.body, `"charge_id":"chg_`) {
		t.Fatalf("got %d %s, replayed %v", first.status, first.body, first.replayed)
	}
	w.settled(t, 1)
	p.stop(t)
	p.Start(t)
	if again := c.pay(t.Context(), t, "o-1", five); again.status != first.status || again.body != first.body || !again.replayed {
		t.Errorf("repeated: got %d %s, replayed %v; want %s", again.status, again.body, again.replayed, first.body)
	}
	if other := c.pay(t.Context(), t, "o-1", strings.Replace(five, "500", "501", 1)); other.status != http.StatusUnprocessableEntity {
		t.Errorf("the key with another amount: got %d %s", other.status, other.body)
	}
	much := strings.NewReplacer("500", "100001", "o-1", "o-2").Replace(five)
	for _, replayed := range []bool{false, true} {
		if a := c.pay(t.Context(), t, "o-2", much); a.status != http.StatusPaymentRequired || a.replayed != replayed {
			t.Errorf("declined: got %d %s, replayed %v, want 402 and %v", a.status, a.body, a.replayed, replayed)
		}
	}
	for field, body := range map[string]string{
		"order":    strings.Replace(five, `"o-1"`, `" "`, 1),
		"amount":   strings.Replace(five, "500", "0", 1),
		"currency": strings.Replace(five, "EUR", "eur", 1),
		"email":    strings.Replace(five, "@", " at ", 1),
		"body":     strings.Replace(five, "amount", "amuont", 1),
	} {
		if a := c.pay(t.Context(), t, "bad-"+field, body); a.status != http.StatusBadRequest || !strings.Contains(a.body, `"field":"`+field+`"`) {
			t.Errorf("wrong %s: got %d %s", field, a.status, a.body)
		}
	}
	w.settled(t, 1)
	w.account(t, "o-1")
}

// account fails unless each of the orders, and no other, was charged once, recorded
// once, mailed once and shipped once.
func (w *environment) account(t *testing.T, orders ...string) {
	t.Helper()
	for what, counts := range map[string]map[string]int{
		"charges": w.charged(t), "payments": w.rows(t, "payments"), "shipments": w.rows(t, "shipments"), "receipts": w.mailed(),
	} {
		check.Equal(t, len(counts), len(orders), "%s for: orders, want %d: %v", what, len(orders), counts)
		for _, order := range orders {
			check.Equal(t, counts[order], 1, "%s: %s", order, what)
		}
	}
}

// TestFlagsAreChecked before anything is opened.
func TestFlagsAreChecked(t *testing.T) {
	t.Parallel()
	good := []string{"-db", "postgres://127.0.0.1:1/x?connect_timeout=1", "-amqp", "amqp://127.0.0.1:1", "-payments", "http://127.0.0.1:1"}
	for _, row := range []struct {
		args  []string
		code  int
		names string
	}{
		{[]string{"-help"}, 0, "-payments"},
		{good[2:], 2, "-db"},
		{append([]string{"-amqp", ""}, append(good[:2:2], good[4:]...)...), 2, "-amqp"},
		{good[:4], 2, "-payments"},
		{append([]string{"-addr", "nowhere"}, good...), 2, "-addr"},
		{append([]string{"-mail", "ftp://x"}, good...), 2, "-mail"},
		{append([]string{"-lease", "0s"}, good...), 2, "-lease"},
		{append(slices.Clip(good), "serve"), 2, "serve"},
		{good, 2, "create tables"},
	} {
		var out, errs strings.Builder
		code := shop.Main(t.Context(), row.args, &out, &errs)
		if code != row.code || !strings.Contains(out.String()+errs.String(), row.names) {
			t.Errorf("%v: code %d, said %q %q; want %d and %q", row.args, code, &out, &errs, row.code, row.names)
		}
	}
}
