// Package brokers publishes the events of an outbox to Kafka and to NATS JetStream with
// Watermill's publishers, and handles each event once on the other side.
package brokers

import (
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill-nats/v2/pkg/nats"
	"github.com/ThreeDotsLabs/watermill/message"
	natsgo "github.com/nats-io/nats.go"

	"github.com/semelgo/semel/semelwatermill"
)

// KafkaPublisher returns a publisher that confirms: Publish returns when all replicas have
// the message. The aggregate is the partition key, so that the events of one aggregate are in
// one partition, in their order.
func KafkaPublisher(brokers ...string) (message.Publisher, error) {
	config := kafka.DefaultSaramaSyncPublisherConfig()
	config.Producer.RequiredAcks = sarama.WaitForAll // the default is the leader alone
	config.Producer.Timeout = 5 * time.Second        // Publish takes no context
	config.Producer.Retry.Max = 0                    // the relay retries
	p, err := kafka.NewPublisher(kafka.PublisherConfig{Brokers: brokers, Marshaler: byAggregate(), OverwriteSaramaConfig: config}, nil)
	if err != nil {
		return nil, fmt.Errorf("open a publisher to Kafka: %w", err)
	}
	return p, nil
}

func byAggregate() kafka.MarshalerUnmarshaler {
	return kafka.NewWithPartitioningMarshaler(func(_ string, msg *message.Message) (string, error) {
		return msg.Metadata.Get(semelwatermill.MetadataAggregate), nil
	})
}

// KafkaSubscriber returns a subscriber of a consumer group. A new group begins with the
// oldest message. Each partition is handled in its order: a message that is not acknowledged
// stops its partition.
func KafkaSubscriber(group string, brokers ...string) (message.Subscriber, error) {
	config := kafka.DefaultSaramaSubscriberConfig()
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	s, err := kafka.NewSubscriber(kafka.SubscriberConfig{
		Brokers: brokers, Unmarshaler: byAggregate(), ConsumerGroup: group, OverwriteSaramaConfig: config,
	}, watermill.NopLogger{})
	if err != nil {
		return nil, fmt.Errorf("open a subscriber of Kafka: %w", err)
	}
	return s, nil
}

// NATSPublisher returns a publisher that confirms: Publish returns when JetStream has stored
// the message, or fails after 5 seconds. The stream has the name of the topic, which
// therefore has no dots.
//
// TrackMsgId would have the server drop repetitions for two minutes. The inbox of the
// receiver drops them for as long as it keeps its records.
func NATSPublisher(url string) (message.Publisher, error) {
	p, err := nats.NewPublisher(nats.PublisherConfig{URL: url, JetStream: nats.JetStreamConfig{AutoProvision: true}}, nil)
	if err != nil {
		return nil, fmt.Errorf("open a publisher to NATS: %w", err)
	}
	return p, nil
}

// NATSSubscriber returns a subscriber with a durable consumer of the topic's stream. The
// server sends the next message after the acknowledgement of the one before: otherwise a
// message that is delivered again would come after later ones.
func NATSSubscriber(consumer, url string) (message.Subscriber, error) {
	s, err := nats.NewSubscriber(nats.SubscriberConfig{
		URL: url, QueueGroupPrefix: consumer,
		JetStream: nats.JetStreamConfig{
			AutoProvision: true, DurablePrefix: consumer,
			SubscribeOptions: []natsgo.SubOpt{natsgo.DeliverAll(), natsgo.AckExplicit(), natsgo.MaxAckPending(1)},
		},
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("open a subscriber of NATS: %w", err)
	}
	return s, nil
}
