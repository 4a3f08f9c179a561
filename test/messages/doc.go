// Package messages holds no code of its own. Its tests deliver messages from a real
// RabbitMQ to processes that handle them with package inbox, by themselves and by a
// Watermill router, over a real PostgreSQL, and kill what takes part.
package messages
