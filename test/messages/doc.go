// Package messages holds no code of its own. Its tests deliver messages from a real
// RabbitMQ to processes that handle them with package inbox, directly and with a
// Watermill router, over a real PostgreSQL. They kill consumers and the broker.
package messages
