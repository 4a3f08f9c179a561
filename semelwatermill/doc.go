// Package semelwatermill handles the messages of a Watermill router once in each
// consumer group, with an inbox of package inbox.
//
//	once, err := semelwatermill.MiddlewareTx(in, engine, semelwatermill.Options{
//		Name:        semelwatermill.FromMetadata("producer", "message_id"),
//		Poison:      publisher,
//		PoisonTopic: "orders.dead",
//	})
//	router.AddMiddleware(once)
//
// A handler gets its transaction from semel.TxOf(msg.Context(), engine). Its writes
// in that transaction commit together with the record of the message. The handler
// must not acknowledge the message itself: the router does so after the commit.
// [Middleware] is for handlers whose effect is outside the record's database.
//
// # Several handlers
//
// Each handler of the router handles each message once: the handler's name is part
// of a message's identity, together with the producer and the ID. The three have
// at most 230 bytes together. A handler has one topic, so the same ID on two topics
// is two messages. A handler with a new name handles all messages again. A change
// between this middleware and direct calls of package inbox has the same effect.
//
// # The result of a delivery
//
//   - Handled, now or before: the message is acknowledged. The messages that the
//     handler produced are stored with the record. Each duplicate produces the same
//     messages again, with the same UUIDs. So a process that dies between the
//     commit and the publishing loses none of them, and their consumers may receive
//     them more than once.
//   - To be redelivered, because the handler failed or the store does not answer:
//     the middleware waits, at most Options.MaxWait and as long as the message's
//     context lasts. Then it returns the error, so that the router logs it and nacks
//     the message.
//   - To be redelivered, because another delivery of the message is in progress or
//     because its retry is not due: the middleware waits in the same way, nacks the
//     message itself and returns no error, so that the router logs none. An outer
//     middleware can detect this by msg.Nacked().
//   - Poison, rejected or in doubt: the message is published to Options.PoisonTopic
//     with the reason in its metadata, and then acknowledged. Without a Poison
//     publisher the router gets a *[RejectedError], for an outer middleware to
//     handle, and nacks the message. This middleware never drops the message, but a
//     broker may, if no queue is bound to that topic. docs/messages.md shows how to
//     prevent that with RabbitMQ.
//
// # Traces
//
// If the engine has a Tracer, such as that of package semelotel, the run of a handler
// continues the trace of the message's metadata. [Publisher] writes it for the events of an
// outbox, and the middleware for the messages that a handler produces, under the names of
// the tracer, such as traceparent. A handler's own metadata of these names is kept. A span
// that an instrumented subscriber or an outer middleware has put into the message's context
// is the parent instead.
//
// # Watermill's own middlewares
//
// middleware.Deduplicator keeps the messages it has seen in the memory of one
// process, for one minute by default. It marks a message before the handler runs,
// and compares messages by a checksum of the body. So it drops the redelivery of a
// message whose handler failed. Use one of the two, not both.
//
// middleware.Retry may be outside this middleware, but its count of tries ends with
// the process; the inbox has its own count, which does not. An outer
// middleware.PoisonQueue would also take messages that are to be redelivered; use
// PoisonQueueWithFilter and select [RejectedError]. middleware.InstantAck
// acknowledges a message before it is handled, and loses it if its handler fails:
// do not use it. middleware.Timeout and middleware.CorrelationID may be on either
// side.
package semelwatermill
