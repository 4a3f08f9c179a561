// Package outbox publishes events of committed transactions to a broker, at least once
// and in order for each aggregate.
//
// A transaction appends its events with [AppendTx], so that they are committed together
// with its other writes or not at all. A [Relay] publishes them afterwards:
//
//	err := outbox.AppendTx(ctx, engine, tx, outbox.Event{
//		Topic: "orders", Aggregate: order.ID, Type: "OrderPlaced", Payload: body,
//	})
//
//	relay, err := outbox.NewRelay(engine, publisher, outbox.Options{})
//	err = relay.Run(ctx) // in a goroutine of each process
//
// # Order
//
// The events of one aggregate, which is a topic and an aggregate's name, are published
// in the order in which they were appended, if the transactions that append them exclude
// each other: each must lock a row of the aggregate before AppendTx, for instance by
// updating it. Without that lock no order exists that a relay could keep. Events of
// different aggregates are published in any order.
//
// # At least once
//
// An event is removed after the broker has confirmed it. If a relay stops between the
// two, another relay publishes the event again, with the same Message.ID: receivers
// should ignore an ID that they have handled, for example with package inbox. Such a
// repetition can come after later events of its aggregate, if a relay was paused for
// longer than its lease; the first publications are in order.
//
// # Failures
//
// While a publisher fails for every event, the broker is taken to be down: the relay
// retries one event at a time with a growing delay, and counts nothing against the events.
// An event that fails while others succeed delays only its own aggregate. Its failures are
// counted in its row, so the count continues after a restart. After [Options].MaxFailures, or at
// once if the error is marked [Permanent], its aggregate is parked: its events are kept and
// not published, and the Observer receives the alarm event.Parked. [Redrive] ends that.
package outbox
