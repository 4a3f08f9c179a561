// Package tasks holds no code of its own. Its tests run tasks in processes that are
// killed and stopped while they work, on the real databases, and compare the
// outcome with tables that the databases write themselves: how often each task had
// its effect, and which transitions each record made.
package tasks
