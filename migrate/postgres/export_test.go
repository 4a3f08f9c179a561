package postgres

// Lock is the advisory lock of a migration.
const Lock = lock
