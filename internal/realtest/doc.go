// Package realtest gives tests real servers, and ways to break them.
//
// A server is found in this order: an address in the environment
// (SEMEL_TEST_POSTGRES_URL, SEMEL_TEST_MARIADB_URL, SEMEL_TEST_RABBITMQ_URL), a program on this machine
// that the package then runs as a child process, and otherwise the test is
// skipped with the reason. SEMEL_TEST_POSTGRES_BIN is the directory of another
// PostgreSQL's programs, and SEMEL_TEST_REDIS_BIN that of another redis-server.
// Where CI=true, or where SEMEL_TEST_REQUIRE names the engine (a list with
// commas, or "all"), such a test fails instead. A test that gets a server is
// marked with the engine's name, for the closing lines of the test run.
//
// A server that was started here never outlives the test binary, however that
// ends: on Linux the kernel kills it with its parent, and everywhere a watchdog
// that holds the other end of a pipe kills what is left and removes its files.
//
// Nothing a server started here holds is worth keeping, so PostgreSQL does not
// wait for the disk. Killing it loses nothing all the same, because what it has
// written is with the operating system; that shows crashes of the server, not of
// the machine.
package realtest
