// Package outboxsql has the statements of an outbox, for all stores that use SQL.
package outboxsql
