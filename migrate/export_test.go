package migrate

// PostgresLock is the advisory lock of those who migrate.
const PostgresLock = postgresLock
