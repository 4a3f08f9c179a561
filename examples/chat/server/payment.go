package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/semelhttp/client"
)

const (
	// paymentBudget limits how long one attempt tries to charge. The next attempt
	// then sends the same request with the same key.
	paymentBudget = 20 * time.Second
	// paymentTry limits the wait for one response.
	paymentTry = 5 * time.Second
	// maxCharge is the longest response that is read, in bytes.
	maxCharge = 64 << 10
)

// payments charges members at the payment service, which charges once per key.
type payments struct {
	charges string // where to POST to
	client  *http.Client
}

// newPayments returns a client of the payment service at base, and nil if base
// is nil.
func newPayments(base *url.URL) *payments {
	if base == nil {
		return nil
	}
	return &payments{
		charges: base.JoinPath("v1", "charges").String(),
		client:  &http.Client{Transport: &client.Transport{Budget: paymentBudget, TryTimeout: paymentTry}},
	}
}

// newCharge is the body of a request to charge. Operators search charges by
// Reference.
type newCharge struct {
	Amount    int64  `json:"amount"`
	Currency  string `json:"currency"`
	Reference string `json:"reference"`
}

// charge charges once per key and returns the charge's ID. All attempts send the
// same key. "Declined" is the payment service's answer to that key, so it is
// final. After every other error the member may have been charged; the next
// attempt sends the same request again.
func (p *payments) charge(ctx context.Context, n newCharge) (string, error) {
	body, err := json.Marshal(n)
	if err != nil {
		return "", fmt.Errorf("encode charge: %w", err)
	}
	ctx = client.WithChildKey(ctx, "charge")
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.charges, bytes.NewReader(body))
	if err != nil {
		return "", fmt.Errorf("make request for charge: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := p.client.Do(r)
	if err != nil {
		return "", fmt.Errorf("charge: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	switch resp.StatusCode {
	case http.StatusCreated:
		return chargeID(io.LimitReader(resp.Body, maxCharge))
	case http.StatusPaymentRequired:
		return "", semel.Final(&semel.Failure{Code: codeDeclined, Message: "The payment was declined."})
	default:
		return "", fmt.Errorf("charge: the payment service answered %s", resp.Status)
	}
}

func chargeID(body io.Reader) (string, error) {
	var made struct {
		ID string `json:"id"`
	}
	if err := json.NewDecoder(body).Decode(&made); err != nil {
		return "", fmt.Errorf("read charge: %w", err)
	}
	if made.ID == "" {
		return "", fmt.Errorf("read charge: it has no id")
	}
	return made.ID, nil
}
