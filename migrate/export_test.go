package migrate

// PostgresLock is the advisory lock of a migration.
const PostgresLock = postgresLock
