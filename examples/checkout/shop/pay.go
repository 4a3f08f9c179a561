package shop

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/semelhttp"
)

// payOrder is the endpoint POST /orders. Its Idempotency-Key makes a customer pay
// once for an order.
func (s *shop) payOrder() (http.Handler, error) {
	return semelhttp.Handle(semelhttp.Endpoint[order, payment]{
		Operation: s.operations.pay,
		Decode:    decodeOrder,
		Run:       s.runPay,
		Render: func(w http.ResponseWriter, _ *http.Request, p payment) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			_ = json.NewEncoder(w).Encode(p) // fails only after the client has disconnected
		},
		Refuse: func(f *semel.Failure) *semelhttp.Problem {
			return &semelhttp.Problem{Status: http.StatusPaymentRequired, Code: f.Code, Detail: f.Message}
		},
	}, semelhttp.Options{ScopeFunc: scopeOf})
}

// scopeOf returns the customer's scope: the same key of two customers is two keys.
func scopeOf(r *http.Request) (semel.Scope, error) {
	customer, _, _ := r.BasicAuth()
	return semel.ScopeOf(customer), nil
}

var currencyForm = regexp.MustCompile(`^[A-Z]{3}$`)

// decodeOrder rejects what cannot be paid before the key is used.
func decodeOrder(r *http.Request) (o order, err error) {
	if customer, _, _ := r.BasicAuth(); customer == "" {
		return o, &semelhttp.Problem{Status: http.StatusUnauthorized, Code: "unauthenticated", Detail: "Send Authorization: Basic with the customer's name."}
	}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return o, invalid("body", "The body must be a JSON object with order, amount, currency and email: "+err.Error()+".")
	}
	switch {
	case strings.TrimSpace(o.ID) == "" || len(o.ID) > 100:
		return o, invalid("order", "The order must have 1 to 100 bytes.")
	case o.Amount <= 0:
		return o, invalid("amount", "The amount must be a whole number above zero.")
	case !currencyForm.MatchString(o.Currency):
		return o, invalid("currency", "The currency must be three capital letters.")
	case !strings.Contains(o.Email, "@"):
		return o, invalid("email", "The email must be an address.")
	}
	return o, nil
}

func invalid(field, detail string) error {
	return &semelhttp.Problem{Status: http.StatusBadRequest, Code: "invalid", Field: field, Detail: detail}
}

// runPay charges the customer and then records the payment. The charge is outside
// of the shop's database, so these are two steps, and the process may die between
// them. The next attempt then repeats both: the payment service answers with the
// charge that it made before, because the key is the same in each attempt, and
// record_payment is an operation with a key of its own.
func (s *shop) runPay(ctx context.Context, c semel.Call, o order) (payment, bool, error) {
	customer := c.Scope().Parts()[0]
	return semel.Do(ctx, s.engine, c, func(ctx context.Context) (payment, error) {
		p := payment{Order: o.ID, Customer: customer, Amount: o.Amount, Currency: o.Currency, Email: o.Email}
		var err error
		if p.ChargeID, err = s.payments.charge(ctx, p); err != nil {
			return payment{}, err
		}
		return s.record(ctx, p)
	})
}

// record writes the payment and enqueues the receipt and the announcement. The three
// commit together, once.
func (s *shop) record(ctx context.Context, p payment) (payment, error) {
	key, err := semel.ChildKey(ctx, "record")
	if err != nil {
		return payment{}, err
	}
	scope := semel.ScopeOf(p.Customer)
	p, _, err = semel.DoTx(ctx, s.engine, s.operations.record.Call(scope, key, p), func(ctx context.Context, tx pgx.Tx) (payment, error) {
		_, err := tx.Exec(ctx,
			`insert into payments (order_id, customer, amount, currency, charge_id) values ($1, $2, $3, $4, $5)`,
			p.Order, p.Customer, p.Amount, p.Currency, p.ChargeID)
		if err != nil {
			return payment{}, err
		}
		for _, op := range []*semel.Operation[payment]{s.operations.receipt, s.operations.announce} {
			if _, err := semel.EnqueueTx(ctx, s.engine, tx, op.Call(scope, key, p), semel.EnqueueOptions{}); err != nil {
				return payment{}, err
			}
		}
		return p, nil
	})
	s.worker.Wake()
	return p, err
}
