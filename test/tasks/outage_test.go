//go:build unix

package tasks_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/realtest"
)

// expireLeases waits until the leases have expired, which cannot be renewed.
func expireLeases() { <-time.After(lease) }

func TestWorkersSurviveDatabaseCrashes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	server := realtest.OwnPostgres(t, "max_connections=300")
	at, s := inPostgresAt(t, server)
	const jobs = 500
	enqueue(t, engineOf(t, s), inTx, "job", jobs)
	var workers []*process
	for i := range 2 {
		workers = append(workers, start(t, worker(at, fmt.Sprint("worker-", i), inTx)))
	}
	w := groundTruth{s.tables}
	const done = `select count(*) from semel_records where state = 4`
	outages := 0
	for _, part := range []int64{jobs / 5, jobs / 2} {
		w.await(t, part, "tasks that are done", done)
		server.Kill()
		outages++
		workers[outages%len(workers)].Await(t, string(event.StoreError))
		expireLeases()
		server.Start(t)
	}
	w.await(t, jobs, "tasks that are done", done)
	endAll(t, workers)
	w.wantLegalTransitions(t)
	w.want(t, jobs, "effects", `select count(*) from effects`)
	w.want(t, jobs, "tasks that had an effect", `select count(distinct task) from effects`)
	errs := w.mark(t, string(event.StoreError))
	t.Logf("%d crashes of the database, %d askings without an answer, %d requeues, %d releases",
		outages, errs, w.count(t, requeues), w.count(t, releases))
	wantSome(t, "an asking without an answer", errs)
}
