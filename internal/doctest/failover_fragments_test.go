package doctest_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store/postgres"
)

// withFollowingPool contains the fragment of docs/stores.md.
func withFollowingPool(ctx context.Context, use func(*pgxpool.Pool)) error {
	config, err := pgxpool.ParseConfig("postgres://app@db1,db2,db3/app?target_session_attrs=read-write")
	if err != nil {
		return err
	}
	postgres.WatchReplication(config.ConnConfig)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err == nil {
		use(pool)
	}
	return err
}

// TestPoolThatFollowsAFailover checks that the pool has all servers. It does not connect.
func TestPoolThatFollowsAFailover(t *testing.T) {
	t.Parallel()
	check.NoError(t, withFollowingPool(t.Context(), func(pool *pgxpool.Pool) {
		defer pool.Close()
		to := pool.Config().ConnConfig
		if hosts := len(to.Fallbacks); to.Host != "db1" || hosts < 2 || to.OnNotice == nil {
			t.Errorf("the pool connects to %s and %d others, want db1 and at least two others", to.Host, hosts)
		}
	}))
}
