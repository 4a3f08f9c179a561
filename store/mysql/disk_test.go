package mysql_test

import (
	"database/sql"
	"testing"

	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store/storetest"
)

// InnoDB shows commits that are not on disk yet. The store reports none of them, also
// not while the disk is slow.
func TestContractOnAHeldDisk(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	t.Attr("engine", "mysql")
	disk := realtest.NewDisk(t)
	db := connect(t, migrated(t, realtest.OwnMariaDBOn(t, disk, "innodb-stats-persistent=OFF")))
	storetest.Run(t, func(t testing.TB) storetest.Subject[*sql.Tx] {
		s := subject(t, db, db)
		s.Isolate = disk.Hold // the other checks run on a free disk
		return s
	}, storetest.CallParts()...)
}
