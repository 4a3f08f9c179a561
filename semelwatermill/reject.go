package semelwatermill

import (
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/store"
)

// What the metadata of a rejected message tells. The first four are the keys of
// Watermill's own poison queue.
const (
	ReasonKey     = "reason_poisoned"     // the error
	TopicKey      = "topic_poisoned"      // where it came from
	HandlerKey    = "handler_poisoned"    // whose handler it was for
	SubscriberKey = "subscriber_poisoned" // by whom it came
	RecordKey     = "semel_id"            // the ID of its record, empty if it has no name
	InDoubtKey    = "semel_in_doubt"      // "true" if nobody knows whether it was handled
)

// RejectedError says that a message is never to be handled, and was not given to a
// Poison publisher.
type RejectedError struct {
	// Result says why.
	Result inbox.Result
}

// Error returns why.
func (e *RejectedError) Error() string {
	return fmt.Sprintf("semelwatermill: rejected: %v", e.Result.Err)
}

// Unwrap returns the result's error.
func (e *RejectedError) Unwrap() error { return e.Result.Err }

// rejectDelay is how long a message is held that is rejected and that nobody takes.
const rejectDelay = time.Second

// reject gives the message to Poison. It is nil once that has it.
func (c *deduplicator) reject(msg *message.Message, r inbox.Result) error {
	if c.o.Poison == nil {
		sleep(msg.Context(), min(rejectDelay, c.o.MaxWait))
		return &RejectedError{Result: r}
	}
	dead := msg.CopyWithContext()
	ctx := msg.Context()
	dead.Metadata.Set(ReasonKey, r.Err.Error())
	dead.Metadata.Set(TopicKey, message.SubscribeTopicFromCtx(ctx))
	dead.Metadata.Set(HandlerKey, message.HandlerNameFromCtx(ctx))
	dead.Metadata.Set(SubscriberKey, message.SubscriberNameFromCtx(ctx))
	if r.ID != (store.ID{}) {
		dead.Metadata.Set(RecordKey, r.ID.String())
	}
	if r.InDoubt {
		dead.Metadata.Set(InDoubtKey, "true")
	}
	if err := c.o.Poison.Publish(c.o.PoisonTopic, dead); err != nil {
		sleep(ctx, c.o.MaxWait)
		return fmt.Errorf("semelwatermill: publish to %s: %w", c.o.PoisonTopic, err)
	}
	return nil
}
