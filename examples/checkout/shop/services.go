package shop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/semelhttp/client"
)

// maxAnswer is the longest answer of a service that is read, in bytes.
const maxAnswer = 64 << 10

// service is another company's HTTP API that deduplicates requests by their
// Idempotency-Key.
type service struct {
	url    string
	client *http.Client
}

func newService(at *url.URL, path ...string) service {
	return service{
		url: at.JoinPath(path...).String(),
		// One attempt keeps trying for 20 seconds. Then the next attempt sends the
		// same request.
		client: &http.Client{Transport: &client.Transport{Budget: 20 * time.Second, TryTimeout: 5 * time.Second}},
	}
}

// post sends body as JSON. The key of the request is the child key called name: the
// same in each attempt of the operation that ctx belongs to.
func (s service) post(ctx context.Context, name string, body any) (status int, answer []byte, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, nil, fmt.Errorf("encode request: %w", err)
	}
	r, err := http.NewRequestWithContext(client.WithChildKey(ctx, name), http.MethodPost, s.url, bytes.NewReader(text))
	if err != nil {
		return 0, nil, fmt.Errorf("make request: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	answer, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return resp.StatusCode, answer, errors.Join(err, resp.Body.Close())
}

// payments charges customers.
type payments struct{ service }

// charge charges the customer of p once per key and returns the name of the charge.
// "Declined" is the service's own answer for the key, so it is proof that nothing was
// charged, and final. After any other error the customer may have been charged; the
// next attempt finds out by sending the same request.
func (s payments) charge(ctx context.Context, p payment) (string, error) {
	status, answer, err := s.post(ctx, "charge", map[string]any{
		"amount": p.Amount, "currency": p.Currency, "reference": p.Order,
	})
	if err != nil {
		return "", fmt.Errorf("charge: %w", err)
	}
	switch status {
	case http.StatusCreated:
	case http.StatusPaymentRequired:
		return "", semel.Final(&semel.Failure{Code: "declined", Message: "The payment was declined. Nothing was charged."})
	default:
		return "", fmt.Errorf("charge: the payment service answered %d", status)
	}
	var made struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(answer, &made); err != nil {
		return "", fmt.Errorf("read charge: %w", err)
	}
	if made.ID == "" {
		return "", errors.New("read charge: it has no id")
	}
	return made.ID, nil
}

// mail is what the mail service gets.
type mail struct {
	To      string `json:"to"`
	Subject string `json:"subject"`
	Text    string `json:"text"`
}

// mailer sends a mail. A mail that is sent again from another attempt of the same
// operation has the same key.
type mailer func(ctx context.Context, m mail) error

// mailService posts mails to a service that deduplicates them by key.
func mailService(at *url.URL) mailer {
	s := newService(at)
	return func(ctx context.Context, m mail) error {
		status, _, err := s.post(ctx, "mail", m)
		if err != nil {
			return fmt.Errorf("mail: %w", err)
		}
		if status >= http.StatusMultipleChoices {
			return fmt.Errorf("mail: the mail service answered %d", status)
		}
		return nil
	}
}

// mailLog writes mails to the log, to try the shop out without a mail service.
func mailLog(log *slog.Logger) mailer {
	return func(ctx context.Context, m mail) error {
		log.LogAttrs(ctx, slog.LevelInfo, "mail", slog.String("to", m.To), slog.String("subject", m.Subject))
		return nil
	}
}
