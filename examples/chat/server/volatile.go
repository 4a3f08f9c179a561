package server

import (
	"context"
	"log/slog"

	"github.com/semelgo/semel/examples/chat/live"
)

// publishRead tells the other devices and members that a user has read messages. It may be lost:
// the next reading of the group shows it.
func (s *app) publishRead(ctx context.Context, group string, user, seq int64) {
	if err := live.Read(ctx, s.bus, group, user, seq); err != nil {
		s.log.InfoContext(ctx, "a read marker was not published", slog.Any("error", err))
	}
}
