package chatdb_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/internal/check"
)

// do runs a write of w in a transaction, which is rolled back if the write fails.
func do[T any](t *testing.T, db chatdb.DB, write func(ctx context.Context, tx chatdb.Tx) (T, error)) (v T, err error) {
	t.Helper()
	tx, err := db.Begin(t.Context())
	if err != nil {
		return v, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if v, err = write(t.Context(), tx); err != nil {
		return v, err
	}
	return v, tx.Commit(t.Context())
}

func send(t *testing.T, db chatdb.DB, w chatdb.Writer, group string, author int64, text string) (chatdb.Message, error) {
	t.Helper()
	return do(t, db, func(ctx context.Context, tx chatdb.Tx) (chatdb.Message, error) {
		return w.Send(ctx, tx, chatdb.NewMessage{GroupID: group, AuthorID: author, Text: text, ClientID: text, MarkRead: true})
	})
}

func addMembers(t *testing.T, db chatdb.DB, w chatdb.Writer, group string, by int64, users ...int64) error {
	t.Helper()
	_, err := do(t, db, func(ctx context.Context, tx chatdb.Tx) (joined []int64, err error) {
		_, joined, err = w.AddMembers(ctx, tx, group, by, users)
		return joined, err
	})
	return err
}

func remove(t *testing.T, db chatdb.DB, w chatdb.Writer, group string, by, user int64) error {
	t.Helper()
	_, err := do(t, db, func(ctx context.Context, tx chatdb.Tx) (struct{}, error) {
		return struct{}{}, w.RemoveMember(ctx, tx, group, by, user)
	})
	return err
}

func rename(t *testing.T, db chatdb.DB, w chatdb.Writer, group string, by int64, name string) error {
	t.Helper()
	_, err := do(t, db, func(ctx context.Context, tx chatdb.Tx) (chatdb.Group, error) {
		return w.Rename(ctx, tx, group, by, name)
	})
	return err
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	check.Require(t, errors.Join(errs...))
}

// TestEveryChangeIsNumberedAndPublished: each write that members see takes the next number
// and publishes a frame with the same contents as a read. Writes that change nothing, and
// refused ones, take no number.
func TestEveryChangeIsNumberedAndPublished(t *testing.T) {
	onEach(t, 3, func(t *testing.T, db chatdb.DB) {
		var changes []chatdb.Change
		w := chatdb.Writer{Publish: func(_ context.Context, _ chatdb.Tx, c chatdb.Change) error {
			changes = append(changes, c)
			return nil
		}}
		g := check.Must(do(t, db, func(ctx context.Context, tx chatdb.Tx) (chatdb.Group, error) {
			return w.CreateGroup(ctx, tx, chatdb.NewGroup{OwnerID: 1, Name: "crew", Members: []int64{2}})
		}))(t)
		first := check.Must(send(t, db, w, g.ID, 2, "hello"))(t)
		edit := func(by int64, text string) (chatdb.Message, error) {
			return do(t, db, func(ctx context.Context, tx chatdb.Tx) (chatdb.Message, error) {
				return w.Edit(ctx, tx, g.ID, first.Seq, by, text)
			})
		}
		erase := func(by int64) (chatdb.Message, error) {
			return do(t, db, func(ctx context.Context, tx chatdb.Tx) (chatdb.Message, error) {
				return w.Delete(ctx, tx, g.ID, first.Seq, by)
			})
		}
		for range 2 {
			edited := check.Must(edit(2, "hello there"))(t)
			if edited.EditedAt == nil || edited.Text != "hello there" || edited.Seq != 1 || edited.Change != 3 {
				t.Errorf("edited: %+v", edited)
			}
		}
		check.ErrorIs(t, check.Err(edit(1, "no")), chatdb.ErrNotAuthor, "the owner edits another one's message")
		must(t, addMembers(t, db, w, g.ID, 1, 3, 2), addMembers(t, db, w, g.ID, 1, 3))
		check.ErrorIs(t, check.Err(erase(3)), chatdb.ErrNotAuthor, "a member deletes another one's message")
		for range 2 {
			gone, err := erase(1) // the owner may
			must(t, err)
			if !gone.Deleted || gone.Text != "" || gone.Seq != 1 || gone.Change != 5 {
				t.Errorf("deleted: %+v", gone)
			}
		}
		check.ErrorIs(t, check.Err(edit(2, "back")), chatdb.ErrNotFound, "a deleted message is edited")
		must(t, rename(t, db, w, g.ID, 1, "team"), rename(t, db, w, g.ID, 1, "team"))
		for _, err := range []error{rename(t, db, w, g.ID, 2, "x"), addMembers(t, db, w, g.ID, 2, 3), remove(t, db, w, g.ID, 2, 3)} {
			if !errors.Is(err, chatdb.ErrNotOwner) {
				t.Errorf("a member does what is the owner's: %v", err)
			}
		}
		must(t, remove(t, db, w, g.ID, 1, 3), remove(t, db, w, g.ID, 1, 3), remove(t, db, w, g.ID, 3, 3))

		now := check.Must(chatdb.GroupByID(t.Context(), db, g.ID))(t)
		messages := check.Must(chatdb.MessagesAfter(t.Context(), db, g.ID, 0, 10))(t)
		if len(changes) != 7 || now.LastChange != 7 || messages.Change != 7 {
			t.Fatalf("%d changes were published, the last is %d and %d, want 7", len(changes), now.LastChange, messages.Change)
		}
		for i, c := range changes {
			if c.Number != int64(i+1) || c.Group != g.ID {
				t.Errorf("change %d is %+v", i+1, c)
			}
		}
		last := changes[6]
		if diff := cmp.Diff(chatdb.GroupFrame{
			Push: "group", Group: g.ID, Change: 7, Detail: now, Added: []int64{}, Removed: []int64{3},
		}, last.Frame); diff != "" || !slices.Equal(last.Audience, []int64{3}) {
			t.Errorf("the last change, to %v (-want +got):\n%s", last.Audience, diff)
		}
		check.NoDiff(t, cmp.Diff(chatdb.MessageFrame{Push: "message", Group: g.ID, Change: 5, Message: messages.Messages[0]}, changes[4].Frame), "the deletion")
	})
}

// TestNothingOfARefusedChangeStays: if Publish fails, the write fails.
func TestNothingOfARefusedChangeStays(t *testing.T) {
	onEach(t, 1, func(t *testing.T, db chatdb.DB) {
		g := create(t, db, chatdb.NewGroup{OwnerID: 1, Name: "crew"})
		errFull := errors.New("full")
		w := chatdb.Writer{Publish: func(context.Context, chatdb.Tx, chatdb.Change) error { return errFull }}
		check.ErrorIs(t, check.Err(send(t, db, w, g.ID, 1, "hello")), errFull, "Send")
		if now, err := chatdb.GroupByID(t.Context(), db, g.ID); err != nil || now.LastSeq != 0 || now.LastChange != 1 {
			t.Errorf("the group is %+v, %v", now, err)
		}
	})
}

// TestOwnersLeave: the longest member becomes the owner, and a group may be left by all.
func TestOwnersLeave(t *testing.T) {
	onEach(t, 3, func(t *testing.T, db chatdb.DB) {
		var w chatdb.Writer
		g := create(t, db, chatdb.NewGroup{OwnerID: 2, Name: "crew"})
		must(t, addMembers(t, db, w, g.ID, 2, 3), addMembers(t, db, w, g.ID, 2, 1), remove(t, db, w, g.ID, 2, 2))
		now, err := chatdb.GroupByID(t.Context(), db, g.ID)
		if err != nil || now.OwnerID != 3 || !now.Members[1].Owner || now.Members[0].Owner {
			t.Errorf("after the owner has left: %+v, %v; want the owner 3", now, err)
		}
		must(t, addMembers(t, db, w, g.ID, 3, 2), remove(t, db, w, g.ID, 3, 3), remove(t, db, w, g.ID, 1, 1))
		if now, err := chatdb.GroupByID(t.Context(), db, g.ID); err != nil || now.OwnerID != 2 {
			t.Errorf("the owner is %d, %v; want 2, who came back", now.OwnerID, err)
		}
		must(t, remove(t, db, w, g.ID, 2, 2))
		if now, err := chatdb.GroupByID(t.Context(), db, g.ID); err != nil || len(now.Members) != 0 {
			t.Errorf("the group of all that left: %+v, %v", now, err)
		}
		check.ErrorIs(t, remove(t, db, w, "grp_none", 2, 2), chatdb.ErrNotFound, "leaving no group")
	})
}

// TestRemovedMembersWriteNothing: the check holds in the transaction of the write.
func TestRemovedMembersWriteNothing(t *testing.T) {
	onEach(t, 2, func(t *testing.T, db chatdb.DB) {
		var w chatdb.Writer
		g := create(t, db, chatdb.NewGroup{OwnerID: 1, Name: "crew", Members: []int64{2}})
		m, err := send(t, db, w, g.ID, 2, "hello")
		must(t, err, remove(t, db, w, g.ID, 1, 2))
		for name, write := range map[string]func(ctx context.Context, tx chatdb.Tx) (any, error){
			"send": func(ctx context.Context, tx chatdb.Tx) (any, error) {
				return w.Send(ctx, tx, chatdb.NewMessage{GroupID: g.ID, AuthorID: 2, Text: "late"})
			},
			"edit":   func(ctx context.Context, tx chatdb.Tx) (any, error) { return w.Edit(ctx, tx, g.ID, m.Seq, 2, "late") },
			"delete": func(ctx context.Context, tx chatdb.Tx) (any, error) { return w.Delete(ctx, tx, g.ID, m.Seq, 2) },
			"rename": func(ctx context.Context, tx chatdb.Tx) (any, error) { return w.Rename(ctx, tx, g.ID, 2, "late") },
			"read": func(ctx context.Context, tx chatdb.Tx) (any, error) {
				_, moved, err := chatdb.MoveReadTx(ctx, tx, g.ID, 2, 1)
				return moved, err
			},
			"remove": func(ctx context.Context, tx chatdb.Tx) (any, error) { return nil, w.RemoveMember(ctx, tx, g.ID, 2, 1) },
		} {
			check.ErrorIs(t, check.Err(do(t, db, write)), chatdb.ErrNotMember, "%s by a removed member", name)
		}
		if now, err := chatdb.GroupByID(t.Context(), db, g.ID); err != nil || now.LastChange != 3 {
			t.Errorf("the last change is %d, %v; want 3", now.LastChange, err)
		}
	})
}

// TestLeaveAgainstSend removes a member while the member sends: no message has a later
// change than the removal.
func TestLeaveAgainstSend(t *testing.T) {
	onEach(t, 2, func(t *testing.T, db chatdb.DB) {
		var w chatdb.Writer
		g := create(t, db, chatdb.NewGroup{OwnerID: 1, Name: "crew", Members: []int64{2}})
		var all sync.WaitGroup
		begun := make(chan struct{})
		for i := range 8 {
			all.Go(func() {
				<-begun
				if i == 4 {
					check.NoError(t, remove(t, db, w, g.ID, 2, 2))
					return
				}
				if _, err := send(t, db, w, g.ID, 2, fmt.Sprint(i)); err != nil && !errors.Is(err, chatdb.ErrNotMember) {
					t.Error(err)
				}
			})
		}
		close(begun)
		all.Wait()
		now := check.Must(chatdb.GroupByID(t.Context(), db, g.ID))(t)
		if now.LastChange != now.LastSeq+2 || now.LastMessage != nil && now.LastMessage.Change >= now.LastChange {
			t.Errorf("%d messages, %d changes, the last message is %+v; want the removal last", now.LastSeq, now.LastChange, now.LastMessage)
		}
	})
}

// TestTwoEditsAreTwoChanges edits a message from two transactions at once.
func TestTwoEditsAreTwoChanges(t *testing.T) {
	onEach(t, 1, func(t *testing.T, db chatdb.DB) {
		var w chatdb.Writer
		g := create(t, db, chatdb.NewGroup{OwnerID: 1, Name: "crew"})
		check.Must(send(t, db, w, g.ID, 1, "hello"))(t)
		changes := make(chan int64, 2)
		for _, text := range []string{"one", "two"} {
			go func() {
				m, err := do(t, db, func(ctx context.Context, tx chatdb.Tx) (chatdb.Message, error) {
					return w.Edit(ctx, tx, g.ID, 1, 1, text)
				})
				if err != nil || m.Text != text {
					t.Errorf("edited to %q: %+v, %v", text, m, err)
				}
				changes <- m.Change
			}()
		}
		got := []int64{<-changes, <-changes}
		if slices.Sort(got); !slices.Equal(got, []int64{3, 4}) {
			t.Errorf("the edits are the changes %v, want 3 and 4", got)
		}
	})
}
