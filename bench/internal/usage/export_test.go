package usage

import "time"

// Exported for tests.
var (
	ParseMachine = parseMachine
	ParseProcess = parseProcess
)

// Tick is the unit of the counts in /proc.
const Tick = tick

// Process is what is seen of one.
type Process struct {
	Parent, Threads int
	Own, Waited     time.Duration
}

// Seen is p for others to look at.
func Seen(p process) Process { return Process{p.parent, p.threads, p.own, p.waited} }

// Between is what was used from a mark of nothing to one of so much.
func Between(client, server, busy, capacity time.Duration) Span {
	return Mark{client: client, server: server, busy: busy, capacity: capacity}.since(Mark{})
}
