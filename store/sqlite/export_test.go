package sqlite

import "time"

// SetPatience changes how long s waits for the right to write.
func (s *Store) SetPatience(d time.Duration) { s.patience = d }

// SetCommitBound changes how long s waits for a COMMIT.
func (s *Store) SetCommitBound(d time.Duration) { s.commitBound = d }

// Statements returns the text of every prepared statement, and of those that list records.
func Statements() []string {
	all := texts()
	listed := []string{sqlScan, sqlScanRare, sqlScanDue, sqlScanWaits, sqlScanLeases, sqlClaimed, sqlNotes}
	return append(all[:], listed...)
}

// CodeOf is codeOf.
func CodeOf(err error) int { return codeOf(err) }
