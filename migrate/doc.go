// Package migrate makes and updates the tables that Semel's stores keep their
// records in.
//
// The migrations are the plain SQL files of the store's package, so that they
// can also be run by a tool of your own; use one or the other. Which of them
// have run is kept in the table semel_migrations.
//
// It is safe to migrate whenever a process starts, however many start at once:
// one of them does the work while the others wait for it.
package migrate
