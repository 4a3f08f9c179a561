package task

import "time"

// The process's clock says which ticks have come. Processes whose clocks differ
// enqueue the same ticks under the same keys, one a little later than the other.

func now() time.Time { return time.Now() } //nolint:forbidigo // see above
