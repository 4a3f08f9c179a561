package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
)

// outcome is what each operation of the benchmarks leaves: 256 bytes that do not
// compress.
func outcome() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}

// cpu returns the processor time that this process has used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// each measures run, which does one operation, by callers at a time.
func each(b *testing.B, callers int, run func(key string) error) {
	b.Helper()
	b.ReportAllocs()
	b.ResetTimer()
	before := cpu(b)
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := c; i < b.N; i += callers {
				if err := run(uuid()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/float64(b.N)/1000, "cpu-us/op")
}

func uuid() string {
	h, l := rand.Uint64(), rand.Uint64()
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", h>>32, h>>16&0xffff, h&0xffff, l>>48, l&(1<<48-1))
}

const user = "user-0192d3a4-5b6c-7d8e"

// BenchmarkNaive is what people write by hand: two statements, each committed by
// itself, on the one connection that writes.
func BenchmarkNaive(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprint("callers=", callers), func(b *testing.B) {
			insert, update, _ := naiveStatements(b)
			ctx := context.WithoutCancel(b.Context()) // the driver starts a goroutine for one that can end
			result := outcome()
			each(b, callers, func(key string) error {
				key = user + ":" + key
				if _, err := insert.ExecContext(ctx, key, time.Now().UnixMicro()); err != nil {
					return err
				}
				_, err := update.ExecContext(ctx, result, time.Now().Add(24*time.Hour).UnixMicro(), key)
				return err
			})
		})
	}
}

// BenchmarkBare is one insert of the row as it is in the end, and no more.
func BenchmarkBare(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprint("callers=", callers), func(b *testing.B) {
			_, _, bare := naiveStatements(b)
			ctx := context.WithoutCancel(b.Context())
			result := outcome()
			each(b, callers, func(key string) error {
				now := time.Now()
				_, err := bare.ExecContext(ctx, user+":"+key, result, now.UnixMicro(), now.Add(24*time.Hour).UnixMicro())
				return err
			})
		})
	}
}

// byHand returns hand-written statements for comparison.
func naiveStatements(b *testing.B) (insert, update, bare *sql.Stmt) {
	b.Helper()
	db := open(b)
	db.SetMaxOpenConns(1)
	mustExec(b, db, `CREATE TABLE naive (key TEXT PRIMARY KEY, state INTEGER, result BLOB, created INTEGER, expires INTEGER)`)
	prepare := func(text string) *sql.Stmt {
		stmt, err := db.PrepareContext(b.Context(), text)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { stmt.Close() })
		return stmt
	}
	return prepare(`INSERT INTO naive (key, state, created) VALUES (?, 1, ?) ON CONFLICT DO NOTHING`),
		prepare(`UPDATE naive SET state = 2, result = ?, expires = ? WHERE key = ? AND state = 1`),
		prepare(`INSERT INTO naive (key, state, result, created, expires) VALUES (?, 2, ?, ?, ?) ON CONFLICT DO NOTHING`)
}

// BenchmarkSwap claims and completes, in batches as callers at the same time make
// them.
func BenchmarkSwap(b *testing.B) {
	for _, size := range []int{1, 4, 16, 64} {
		b.Run(fmt.Sprint("batch=", size), func(b *testing.B) {
			s := sqlite.New(open(b))
			result := outcome()
			b.ReportAllocs()
			b.ResetTimer()
			before := cpu(b)
			for done := 0; done < b.N; done += size {
				claims := claims(min(size, b.N-done))
				swapped(b, s, claims)
				swapped(b, s, completes(claims, result))
			}
			b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/float64(b.N)/1000, "cpu-us/op")
		})
	}
}

func claims(n int) []store.Change {
	changes := make([]store.Change, n)
	for i := range changes {
		key := uuid()
		changes[i].To = store.Record{
			ID:    store.NewID("create_payment", user, key),
			Token: store.Token{State: store.InProgress, Attempt: 1, Owner: rand.Uint64()},
			Due:   30 * time.Second, Operation: "create_payment", Scope: user, Key: key,
			Fingerprint: []byte("sixteen or more."),
		}
	}
	return changes
}

func completes(claims []store.Change, result []byte) []store.Change {
	changes := make([]store.Change, len(claims))
	for i := range changes {
		changes[i].If = claims[i].To.Token
		changes[i].To = store.Record{ID: claims[i].To.ID, Token: changes[i].If, Expire: 24 * time.Hour, Outcome: result}
		changes[i].To.State = store.Succeeded
	}
	return changes
}

func swapped(b *testing.B, s store.Store, changes []store.Change) {
	b.Helper()
	answers, err := s.Swap(context.Background(), changes)
	if err != nil {
		b.Fatal(err)
	}
	for i := range answers {
		if !answers[i].Applied(changes[i]) {
			b.Fatalf("Swap = %+v, want applied", answers[i])
		}
	}
}

// BenchmarkGet reads finished records, as replays do, one at a time and together.
func BenchmarkGet(b *testing.B) {
	s := sqlite.New(open(b))
	claimed := claims(1000)
	swapped(b, s, claimed)
	swapped(b, s, completes(claimed, outcome()))
	for _, size := range []int{1, 4, 32, 64} {
		b.Run(fmt.Sprint("ids=", size), func(b *testing.B) {
			ids := make([]store.ID, size)
			b.ReportAllocs()
			b.ResetTimer()
			before := cpu(b)
			for done := 0; done < b.N; done += size {
				for i := range ids {
					ids[i] = claimed[rand.IntN(len(claimed))].To.ID
				}
				if _, err := s.Get(context.Background(), ids); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/float64(b.N)/1000, "cpu-us/op")
		})
	}
}
