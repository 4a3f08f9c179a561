package shop

import (
	"time"

	"github.com/semelgo/semel"
)

// order is the body of a request to pay.
type order struct {
	ID       string `json:"order"`
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
	Email    string `json:"email"`
}

// payment is the answer to a request to pay, and the input of what follows it.
type payment struct {
	Order    string `json:"order"`
	Customer string `json:"customer"`
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
	Email    string `json:"email"`
	ChargeID string `json:"charge_id"`
}

// retention is how long the shop remembers its keys. The payment service remembers
// the keys that it gets from the shop for 90 days, which must be longer.
const retention = 30 * 24 * time.Hour

// operations are the shop's four kinds of work. Each names its policy, which says
// what Semel may do when the process that ran the work has died.
type operations struct {
	// pay charges the customer at the payment service, which deduplicates by key.
	// That makes it safe to run again.
	pay *semel.Operation[order]
	// record writes the payment and enqueues the tasks, in one transaction of the
	// shop's own database.
	record *semel.Operation[payment]
	// receipt mails the receipt. The mail service deduplicates by key.
	receipt *semel.Operation[payment]
	// announce publishes the payment to RabbitMQ. A message may be published more
	// than once; the warehouse's inbox handles it once.
	announce *semel.Operation[payment]
}

func define(c config) operations {
	retry := func() *semel.Retry { return &semel.Retry{MaxErrors: 20, MaxCrashes: 100, Delay: backoff} }
	return operations{
		pay: semel.Define("pay_order", semel.OperationOptions[order]{
			Policy: semel.Keyed(), Lease: c.lease, Retention: retention,
		}),
		record: semel.Define("record_payment", semel.OperationOptions[payment]{Retention: retention}),
		receipt: semel.Define("send_receipt", semel.OperationOptions[payment]{
			Policy: semel.Keyed(), Lease: c.lease, Retention: retention, Retry: retry(),
		}),
		announce: semel.Define("announce_payment", semel.OperationOptions[payment]{
			Policy: semel.AtLeastOnce(), Lease: c.lease, Retention: retention, Retry: retry(),
		}),
	}
}

// backoff waits 1, 2, 4 … seconds, and about ten minutes at most.
func backoff(errors int) time.Duration { return time.Second << min(max(errors-1, 0), 9) }
