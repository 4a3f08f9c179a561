package semelwatermill

import (
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/store"
)

// Metadata keys of a rejected message. The first four are those of Watermill's
// own poison queue.
const (
	ReasonKey     = "reason_poisoned"     // the error
	TopicKey      = "topic_poisoned"      // the topic from which the message came
	HandlerKey    = "handler_poisoned"    // the router's handler
	SubscriberKey = "subscriber_poisoned" // the subscriber that received the message
	RecordKey     = "semel_id"            // the ID of the message's record; absent if the message has no valid identity
	InDoubtKey    = "semel_in_doubt"      // "true" if it is unknown whether the message was handled
)

// RejectedError is the error for a message that must never be handled, when
// there is no Poison publisher.
type RejectedError struct {
	// Result has the reason.
	Result inbox.Result
}

// Error returns the reason.
func (e *RejectedError) Error() string {
	return fmt.Sprintf("semelwatermill: rejected: %v", e.Result.Err)
}

// Unwrap returns the result's error.
func (e *RejectedError) Unwrap() error { return e.Result.Err }

// rejectDelay is how long a rejected message is held before it is nacked, if
// there is no Poison publisher.
const rejectDelay = time.Second

// reject publishes the message with Poison. It returns nil after Poison has
// accepted it.
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
