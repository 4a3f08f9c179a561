// Package tasks holds no code of its own. Its tests run tasks in processes that
// are killed and stopped while they work, on the real databases, and look into
// tables for what then has truly happened: how often each task had its effect, and
// which way each record went.
package tasks
