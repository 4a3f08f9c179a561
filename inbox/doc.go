// Package inbox handles a message once in each consumer group, however often it
// is delivered.
//
// Brokers deliver at least once: after a lost acknowledgement, a crashed
// consumer, a restart, and whenever a producer sends again what it has sent. An
// [Inbox] is an operation whose keys are the messages' own, so that the record of
// a message, not the broker, says whether it was handled:
//
//	r := inbox.HandleTx(ctx, shipping, engine, m, func(ctx context.Context, tx pgx.Tx, o Order) error {
//		return ship(ctx, tx, o)
//	})
//	switch r.Decision {
//	case inbox.Ack:       // handled, now or before: tell the broker that it is done
//	case inbox.Redeliver: // not handled: have it delivered again, after r.After
//	case inbox.Reject:    // never to be handled: to the dead letters; r says why
//	}
//
// # Which call for which effect
//
//   - The effect is in the record's own database: [HandleTx]. Effect and record
//     share one transaction, so there is one effect for each message, whatever
//     crashes and however often it is delivered.
//   - The effect is anywhere else: [Handle], in the mode [Leased]. What is promised
//     is in the name of the [semel.Policy].
//   - The handler has an answer that is to be sent on: [ReplyTx] and [Reply]. The
//     answer is kept with the record and comes again with each duplicate, so that
//     a crash between the commit and the sending loses nothing.
//
// # What names a message
//
// Its producer and its id, both of them, and both said by the consumer: an id that
// two producers use is two messages. The payload names nothing, unless
// [PayloadHash] is said to be the id; but a message whose id comes again with
// another payload is refused, and nothing is lost of it.
//
// # What is not promised
//
// No order: a message that is to come again later is overtaken. No memory beyond
// the retention: a message that comes again after it is handled again, unless its
// time or its generation tells that it is old. And a handler that kills its process
// each time is counted only where its claim is committed first, in the mode
// [Leased].
package inbox
