package lab

import (
	"context"
	"fmt"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// Free returns the number of free bytes on the disk of the server's files.
func (s *Server) Free(ctx context.Context) (bytes int64, err error) {
	var dir string
	err = s.with(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "show data_directory").Scan(&dir)
	})
	if err != nil {
		return 0, fmt.Errorf("ask where the server's files are: %w", err)
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return 0, fmt.Errorf("ask how much of the disk is free: %w", err)
	}
	return int64(disk.Bavail) * disk.Bsize, nil
}
