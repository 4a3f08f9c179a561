// Package semelwatermill handles the messages of a Watermill router once in each
// consumer group, with an inbox of package inbox.
//
//	once, err := semelwatermill.Middleware(in, engine, semelwatermill.Options{
//		Name:        semelwatermill.FromMetadata("producer", "message_id"),
//		Poison:      publisher,
//		PoisonTopic: "orders.dead",
//	})
//	router.AddMiddleware(once)
//
// A handler finds its transaction by semel.TxOf(msg.Context(), engine), and what it
// writes there is committed together with the record of the message. It must not
// acknowledge the message itself: the router does so once it is committed.
//
// # Several handlers
//
// Each handler of the router handles each message once: the handler's name is part of
// what names a message, beside the producer and the id, and the three have together at
// most 230 bytes. A handler has one topic, so the same id on two topics names two
// messages. Renaming a handler forgets what it has handled. So does a change between
// this middleware and calls of package inbox for the same messages.
//
// # What becomes of a delivery
//
//   - Handled, now or before: it is acknowledged. What the handler has produced is
//     kept with the record and produced again, the same messages with the same
//     UUIDs, for each duplicate: a process that dies between the commit and the
//     publishing loses none of them, and whoever consumes them may see them more
//     than once.
//   - To come again, because its handler failed or because the store does not answer:
//     the middleware waits, no longer than Options.MaxWait and than the message's
//     context lasts, and then returns the error, so that the router logs it and nacks
//     the message.
//   - To come again, because another delivery of it is being handled or because its
//     retry is not due: the middleware waits in the same way, nacks the message itself
//     and returns no error, so that the router logs none. A middleware outside of this
//     one can tell by msg.Nacked().
//   - Poison, or refused, or in doubt: it is published to Options.PoisonTopic with
//     the reason in its metadata, and acknowledged when that is done. Without a
//     Poison publisher the router gets a *[RejectedError], for a middleware outside
//     of this one to act on, and nacks the message. The middleware
//     never drops it; a broker may, if no queue takes what is published to that
//     topic. docs/messages.md says how to prevent that with RabbitMQ.
//
// # Beside Watermill's own middlewares
//
// middleware.Deduplicator keeps what it has seen in the memory of one process, for
// a minute unless told otherwise, marks it before the handler runs, and knows a
// message by a checksum of its body. A message whose handler fails is then dropped
// when it comes again. Use one of the two, not both.
//
// middleware.Retry may stand outside of this one, but counts its tries for itself;
// an inbox has its own count, which outlives processes. middleware.PoisonQueue
// outside of this one would take what is only to come again; use PoisonQueueWithFilter
// and look for a [RejectedError]. middleware.InstantAck acknowledges before anything
// is handled, and so loses what is not: leave it out. middleware.Timeout and
// middleware.CorrelationID may stand on either side.
package semelwatermill
