package postgres_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// between is a tracer that runs a function before the second round trip of a Swap.
type between struct {
	trips int
	do    func()
}

func (b *between) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	if b.trips++; b.trips == 2 && b.do != nil {
		b.do()
	}
	return ctx
}

func (*between) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (*between) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}
func (*between) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData)     {}
func (*between) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

// A worker may claim a Pending record as soon as it exists. The caller that created
// it learns that, also if another change of its batch was not made and a second
// round trip reads the records.
func TestSwapOfWhatIsClaimedAtOnce(t *testing.T) {
	t.Parallel()
	url := database(t)
	direct := newStore(t, connect(t, url), postgres.Options{})
	for name, mixed := range map[string]bool{"alike": false, "mixed": true} {
		watch := &between{}
		s := newStore(t, connect(t, url, func(c *pgxpool.Config) { c.ConnConfig.Tracer = watch }), postgres.Options{})
		var changes []store.Change
		for i := range 20 {
			c := create(name+strconv.Itoa(i), store.Pending, uint64(i+1))
			if mixed {
				c.To.Input = []byte("input")
			}
			if i%2 == 1 { // released by its leader
				claim := c
				claim.To.State = store.InProgress
				mustForce(t, direct, claim)
				c = move(claim, store.Pending)
				if !mixed {
					c.To.Outcome = []byte("progress")
				}
			}
			changes = append(changes, c)
		}
		existing := changes[0]
		existing.To.Owner = 77
		mustForce(t, direct, existing)
		changes[1].If.Owner = 78
		current(t, s, existing) // finds the tables
		watch.trips, watch.do = 0, func() {
			for i, c := range changes[2:] {
				claim := move(c, store.InProgress)
				claim.To.Attempt, claim.To.Owner = 2, uint64(i+100)
				mustForce(t, direct, claim)
			}
		}
		answers, err := s.Swap(t.Context(), changes)
		if err != nil || watch.trips != 2 {
			t.Fatalf("%s: Swap = %v in %d trips, want two", name, err, watch.trips)
		}
		for i, a := range answers {
			if want := i > 1; a.Applied(changes[i]) != want {
				t.Errorf("%s: change %d is applied: %v, want %v: %+v", name, i, !want, want, a.Token)
			}
		}
	}
}
