// Package migrate creates and updates the tables of Semel's stores.
//
// The migrations are the plain SQL files of the store's package, so another
// migration tool can run them instead. Use one tool only. The table
// semel_migrations records which migrations have run.
//
// Every process may migrate when it starts, and any number of processes may
// start at once: one of them runs the migrations while the others wait.
package migrate
