// Package migrate runs the migrations of Semel's tables.
//
// A program uses one of the packages below it, which know a database:
// [github.com/semelgo/semel/migrate/postgres] and
// [github.com/semelgo/semel/migrate/sqlite]. This package is for the authors of
// such packages, and imports no driver.
//
// The migrations are the plain SQL files of the store's package, so another
// migration tool can run them instead. Use one tool only. The table
// semel_migrations records which migrations have run.
//
// Every process may migrate when it starts, and any number of processes may
// start at once: one of them runs the migrations while the others wait.
package migrate
