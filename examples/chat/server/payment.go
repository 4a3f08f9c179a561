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
	"github.com/semelgo/semel/semelhttp"
)

const (
	// paymentBudget is how long an attempt asks for one charge before it leaves
	// that to the next attempt, which asks for the same one.
	paymentBudget = 20 * time.Second
	// paymentTry is how long it waits for one answer.
	paymentTry = 5 * time.Second
	// maxCharge is the longest answer that is read, in bytes.
	maxCharge = 64 << 10
)

// payments charges people at another server, which does it once per key.
type payments struct {
	charges string // where to POST to
	client  *http.Client
}

// newPayments returns what charges at base, and nil for none.
func newPayments(base *url.URL) *payments {
	if base == nil {
		return nil
	}
	return &payments{
		charges: base.JoinPath("v1", "charges").String(),
		client:  &http.Client{Transport: &semelhttp.Transport{Budget: paymentBudget, TryTimeout: paymentTry}},
	}
}

// newCharge is what a charge is asked with. Reference is what people find it by.
type newCharge struct {
	Amount    int64  `json:"amount"`
	Currency  string `json:"currency"`
	Reference string `json:"reference"`
}

// charge charges, once per attempt's key however many attempts there are, and
// returns the charge's name. That it was declined is the receiver's own answer to
// the key, and so it is final. Every other error leaves it unknown whether
// somebody was charged, and so to the next attempt.
func (p *payments) charge(ctx context.Context, n newCharge) (string, error) {
	body, err := json.Marshal(n)
	if err != nil {
		return "", fmt.Errorf("encode charge: %w", err)
	}
	ctx = semelhttp.WithChildKey(ctx, "charge")
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
