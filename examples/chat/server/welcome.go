package server

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/task"
)

// welcomeAll enqueues a welcome for each of the users in tx, the transaction that
// adds them to the group. Memberships and tasks commit together.
func (s *app) welcomeAll(ctx context.Context, tx chatdb.Tx, group string, users []int64) error {
	for _, user := range users {
		call := s.operations.welcome.Call(semel.ScopeOf(group), strconv.FormatInt(user, 10), welcome{GroupID: group, UserID: user})
		if _, err := semel.EnqueueTx(ctx, s.queue, tx, call, semel.EnqueueOptions{}); err != nil {
			return fmt.Errorf("welcome user %d: %w", user, err)
		}
	}
	return nil
}

// welcomeMember is the task's function. It sends a message as the server, unless the user
// has left the group.
func (s *app) welcomeMember(ctx context.Context, tx chatdb.Tx, in welcome) (chatdb.Message, error) {
	u, err := chatdb.UserByID(ctx, tx, in.UserID)
	if err != nil {
		return chatdb.Message{}, err
	}
	if err := chatdb.CheckMember(ctx, tx, in.GroupID, in.UserID); errors.Is(err, chatdb.ErrNotMember) {
		return chatdb.Message{}, nil
	}
	if err := chatdb.LogWelcomeTx(ctx, tx, in.GroupID, in.UserID, attempt(ctx)); err != nil {
		return chatdb.Message{}, err
	}
	return s.writer.Send(ctx, tx, chatdb.NewMessage{
		GroupID: in.GroupID, AuthorID: chatdb.ServerID, Text: "Welcome, " + u.Name + "!",
	})
}

// newWorker returns the worker that runs the tasks. Every server has one.
func newWorker(s *app, to hooks) (*task.Worker, error) {
	w, err := task.New(s.queue, task.Options{Slots: lanesOf(s), Drain: drain, NoSweeper: true})
	if err != nil {
		return nil, err
	}
	return w, task.HandleTx(w, s.queue, s.operations.welcome, wrapped(to.Welcome, s.welcomeMember), task.HandlerOptions{})
}

// lanesOf is how many tasks and imports run at a time. SQLite has one write lock.
func lanesOf(s *app) int {
	if isPostgres(s.config.db) {
		return 4
	}
	return 1
}
