package chatdb_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/internal/check"
)

// TestFollowingChangesMissesNothing reads the changes of a group from page to page while
// others write: it ends with every message as it is.
func TestFollowingChangesMissesNothing(t *testing.T) {
	onEach(t, 1, func(t *testing.T, db chatdb.DB) {
		var w chatdb.Writer
		g := create(t, db, chatdb.NewGroup{OwnerID: 1, Name: "crew"})
		var writers sync.WaitGroup
		for range 3 {
			writers.Go(func() {
				for i := range 8 {
					m, err := send(t, db, w, g.ID, 1, fmt.Sprint(i))
					if err == nil && i%2 == 0 {
						_, err = do(t, db, func(ctx context.Context, tx chatdb.Tx) (chatdb.Message, error) {
							return w.Edit(ctx, tx, g.ID, max(1, m.Seq-3), 1, fmt.Sprint("edited ", m.Seq))
						})
					}
					if err == nil && i%4 == 0 {
						err = rename(t, db, w, g.ID, 1, fmt.Sprint("crew ", m.Seq))
					}
					check.NoError(t, err)
				}
			})
		}
		written := make(chan struct{})
		go func() { writers.Wait(); close(written) }()
		seen, last := make(map[int64]chatdb.Message), int64(0)
		for ended := false; ; {
			p := check.Must(chatdb.MessagesChangedAfter(t.Context(), db, g.ID, last, 3))(t)
			for _, m := range p.Messages {
				if m.Change <= last || m.Change > p.Change {
					t.Errorf("a page after %d with the change %d has a message of %d", last, p.Change, m.Change)
				}
				seen[m.Seq] = m
			}
			if p.Change == last && ended {
				break
			}
			last = p.Change
			select {
			case <-written:
				ended = true
			default:
			}
		}
		all := check.Must(chatdb.MessagesAfter(t.Context(), db, g.ID, 0, 100))(t)
		if len(all.Messages) != 24 || len(seen) != 24 || last != all.Change {
			t.Errorf("%d messages, %d seen, last change %d and %d", len(all.Messages), len(seen), all.Change, last)
		}
		for _, m := range all.Messages {
			check.NoDiff(t, cmp.Diff(m, seen[m.Seq]), "message %d", m.Seq)
		}
	})
}

// TestReadMarkersGoForward moves markers from several transactions at once.
func TestReadMarkersGoForward(t *testing.T) {
	onEach(t, 2, func(t *testing.T, db chatdb.DB) {
		var w chatdb.Writer
		g := create(t, db, chatdb.NewGroup{OwnerID: 1, Name: "crew", Members: []int64{2}})
		for i := range 6 {
			check.Must(send(t, db, w, g.ID, 1, fmt.Sprint(i)))(t)
		}
		var moves atomic.Int64
		move := func(seq int64) int64 {
			read, err := do(t, db, func(ctx context.Context, tx chatdb.Tx) (int64, error) {
				read, moved, err := chatdb.MoveReadTx(ctx, tx, g.ID, 2, seq)
				if moved {
					moves.Add(1)
				}
				return read, err
			})
			check.NoError(t, err)
			return read
		}
		unread := func() int64 {
			groups := check.Must(chatdb.GroupsOf(t.Context(), db, 2))(t)
			return groups[0].For(2).Unread
		}
		check.Equal(t, unread(), 6, "unread")
		var all sync.WaitGroup
		for _, seq := range []int64{2, 5, 1, 4, 3} {
			all.Go(func() {
				if read := move(seq); read < seq {
					t.Errorf("the marker was moved to %d and is %d", seq, read)
				}
			})
		}
		all.Wait()
		moves.Store(0)
		if read, n := move(1), unread(); read != 5 || n != 1 {
			t.Errorf("the marker is %d, %d unread; want 5, 1", read, n)
		}
		if move(5); moves.Load() != 0 {
			t.Error("a marker has moved to where it was, or back")
		}
		check.Equal(t, move(99), 6, "the marker")
		if move(99); moves.Load() != 1 {
			t.Errorf("the marker has moved %d times, want once", moves.Load())
		}
		if now, err := chatdb.GroupByID(t.Context(), db, g.ID); err != nil || now.LastChange != 7 || now.For(1).Unread != 0 {
			t.Errorf("the group is %+v, %v; want no change, and the author to have read all", now, err)
		}
	})
}

// TestGroupsAreListedByActivity: the list has each group's last message and unread count,
// and takes three queries.
func TestGroupsAreListedByActivity(t *testing.T) {
	onEach(t, 2, func(t *testing.T, db chatdb.DB) {
		var w chatdb.Writer
		var made []string
		for i := range 4 {
			made = append(made, create(t, db, chatdb.NewGroup{OwnerID: 1, Name: fmt.Sprint(i), Members: []int64{2}}).ID)
		}
		for _, i := range []int{2, 0, 2} {
			check.Must(send(t, db, w, made[i], 1, "hello"))(t)
		}
		counted := &countedQuerier{Querier: db}
		groups := check.Must(chatdb.GroupsOf(t.Context(), counted, 2))(t)
		var got []string
		var unread []int64
		for _, g := range groups {
			got, unread = append(got, g.Name), append(unread, g.For(2).Unread)
			if last := g.LastMessage; last != nil && last.Seq != g.LastSeq || last == nil && g.LastSeq > 0 {
				t.Errorf("the last message of %s is %+v", g.Name, last)
			}
			if len(g.Members) != 2 {
				t.Errorf("group %s has the members %v", g.Name, g.Members)
			}
		}
		if !slices.Equal(got, []string{"2", "0", "3", "1"}) || !slices.Equal(unread, []int64{2, 1, 0, 0}) || counted.n != 3 {
			t.Errorf("groups %v with %v unread, %d queries; want 2, 0, 3, 1 with 2, 1, 0, 0, and 3", got, unread, counted.n)
		}
	})
}

// countedQuerier counts queries.
type countedQuerier struct {
	chatdb.Querier

	n int
}

func (q *countedQuerier) Query(ctx context.Context, statement string, args ...any) (chatdb.Rows, error) {
	q.n++
	return q.Querier.Query(ctx, statement, args...)
}
