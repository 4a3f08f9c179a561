package postgres_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// serverTime is how long processors have worked for the pool's connections; false
// where that cannot be known, because the server is not on this machine, or that is
// not Linux.
func serverTime(b *testing.B, pool *pgxpool.Pool) (time.Duration, bool) {
	b.Helper()
	rows, err := pool.Query(context.WithoutCancel(b.Context()), `SELECT pid FROM pg_stat_activity WHERE datname = current_database()`)
	if err != nil {
		b.Fatal(err)
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	if err != nil {
		b.Fatal(err)
	}
	var all time.Duration
	for _, pid := range pids {
		one, ok := timeOf(fmt.Sprintf("/proc/%d/schedstat", pid))
		if !ok {
			return 0, false
		}
		all += one
	}
	return all, true
}

// timeOf reads what the kernel keeps of a process, in nanoseconds.
func timeOf(file string) (time.Duration, bool) {
	text, err := os.ReadFile(file)
	fields := bytes.Fields(text)
	if err != nil || len(fields) == 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(fields[0]), 10, 64)
	return time.Duration(n), err == nil
}

// ownTime is how long processors have worked for this process, or zero where that
// cannot be known.
func ownTime() time.Duration {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return 0
	}
	var all time.Duration
	for _, task := range tasks {
		one, _ := timeOf("/proc/self/task/" + task.Name() + "/schedstat")
		all += one
	}
	return all
}
