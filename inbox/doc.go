// Package inbox handles a message once in each consumer group, however often it
// is delivered.
//
// Brokers deliver at least once: a message comes again after a lost
// acknowledgement, a crashed consumer or a restart, and whenever a producer sends
// it again. An [Inbox] is an operation whose keys are the identities of the
// messages. The record of a message, not the broker, decides whether the message
// was handled:
//
//	r := inbox.HandleTx(ctx, shipping, engine, m, func(ctx context.Context, tx pgx.Tx, o Order) error {
//		return ship(ctx, tx, o)
//	})
//	switch r.Decision {
//	case inbox.Ack:       // handled, now or before: acknowledge the delivery
//	case inbox.Redeliver: // not handled: let the broker deliver it again after r.After
//	case inbox.Reject:    // must not be handled: move it to the dead letters; r has the reason
//	}
//
// # Which call for which effect
//
//   - The effect is in the record's own database: [HandleTx]. Effect and record
//     share one transaction, so each message has one effect, whatever crashes and
//     however often it is delivered.
//   - The effect is anywhere else: [Handle], in the mode [Leased]. The
//     [semel.Policy] names what is promised.
//   - The handler has a reply that the consumer must send: [ReplyTx] and [Reply].
//     The reply is stored with the record and returned for each duplicate, so a
//     crash between the commit and the sending loses nothing.
//
// # The identity of a message
//
// The identity consists of the producer and the producer's ID, both given by the
// consumer: the same ID from two producers is two messages. The payload is not
// part of it, unless the consumer uses [PayloadHash] as the ID. A delivery with
// the same identity and another payload is rejected; nothing of it is lost.
//
// # What is not promised
//
// Messages are not ordered: a later message overtakes one that waits for its
// redelivery. Records are kept for the retention only: a message that is
// delivered after that is handled again, unless its time or its generation shows
// that it is old. A handler that kills its process each time is counted only in
// the mode [Leased], where the claim commits first.
package inbox
