package server

import (
	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/semelhttp"
)

// headerProducer names the producer of a message that has no app_id.
const headerProducer = "producer"

// message reads the producer, the message ID and the body of a delivery. Producer
// and ID identify the message. A delivery without them is rejected, because a
// duplicate could not be recognized.
func message(d amqp091.Delivery) (inbox.Message[imported], *semelhttp.Problem) {
	m := inbox.Message[imported]{Producer: d.AppId, ID: d.MessageId}
	if m.Producer == "" {
		m.Producer, _ = d.Headers[headerProducer].(string)
	}
	if m.Producer == "" {
		return m, problem(codeInvalid, headerProducer, "The message has no app_id and no header %q: the producer is unknown.", headerProducer)
	}
	if m.ID == "" {
		return m, problem(codeInvalid, "message_id", "The message has no message_id: is it a duplicate?")
	}
	in, p := readImported(d.Body)
	m.Payload = in
	return m, p
}
