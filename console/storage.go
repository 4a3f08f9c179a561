package console

import (
	"net/http"

	"github.com/semelgo/semel/journal"
)

// storage is the body of the page of partitions and retention.
type storage struct {
	countResult

	Purgeable   int64
	Partitioned bool
	Partitions  []Partition
	Unknown     bool // the partitions cannot be read
	Unrecorded  []journal.Entry
}

// showStorage shows what is past its retention, the partitions and the journal.
func showStorage(s *site, w http.ResponseWriter, r *http.Request) error {
	e, err := s.engineOf(r)
	if err != nil {
		return err
	}
	v := &storage{countResult: e.counts.get(r.Context(), countWait), Partitioned: e.Partitions != nil}
	for _, n := range v.Counts {
		v.Purgeable += n.Purgeable
	}
	if e.Partitions != nil {
		v.Partitions, err = e.Partitions(r.Context())
		v.Unknown = err != nil
	}
	if e.Journal != nil {
		if v.Unrecorded, err = e.Journal.Entries(); err != nil {
			return err
		}
	}
	s.render(w, http.StatusOK, "storage", s.page(r, e, "storage", "Retention", v))
	return nil
}
