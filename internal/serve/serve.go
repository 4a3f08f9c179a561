// Package serve serves HTTP until a context ends. It is for the programs of this repository.
package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// HTTP serves on l until ctx ends or s is closed, which is no error. After the end of ctx,
// running requests may continue for the time grace; then their connections are closed.
func HTTP(ctx context.Context, l net.Listener, s *http.Server, grace time.Duration) error {
	stopped := make(chan error, 1)
	go func() { stopped <- s.Serve(l) }()
	select {
	case err := <-stopped:
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := s.Shutdown(last)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.Close()
	}
	return err
}
