package shop

import (
	"context"
	"fmt"

	"github.com/semelgo/semel/task"
)

// handleTasks gives the worker the functions of its two kinds of task.
func (s *shop) handleTasks() error {
	err := task.Handle(s.worker, s.operations.receipt, s.sendReceipt, task.HandlerOptions{})
	if err != nil {
		return err
	}
	return task.Handle(s.worker, s.operations.announce, s.announcePayment, task.HandlerOptions{})
}

// sendReceipt mails the receipt. It does not run inside a database transaction: a
// transaction that is rolled back and run again would send the mail again.
func (s *shop) sendReceipt(ctx context.Context, p payment) (any, error) {
	return nil, s.mail(ctx, mail{
		To: p.Email, Subject: "Your order " + p.Order,
		Text: fmt.Sprintf("We have received %d.%02d %s for your order %s.", p.Amount/100, p.Amount%100, p.Currency, p.Order),
	})
}

// announcePayment publishes the payment. The task ends only after the broker has
// confirmed that it has stored the message. If the process dies before that is
// recorded, the message is published again under the same ID.
func (s *shop) announcePayment(ctx context.Context, p payment) (any, error) {
	return nil, s.publisher.publish(ctx, p.ChargeID, p)
}
