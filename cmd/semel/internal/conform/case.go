package conform

// Level is the importance of a case.
type Level string

// The levels.
const (
	Must     Level = "MUST"     // the draft, or the syntax that it uses, requires it
	Should   Level = "SHOULD"   // the draft requires it unless there is a reason
	May      Level = "MAY"      // the draft allows it
	Security Level = "security" // required by the draft's security section or by good practice
	Promise  Level = "profile"  // the server's profile promises it; the draft leaves it open
	Client   Level = "client"   // about clients; it cannot be tested on a server
)

// Verdict is the result of a case.
type Verdict string

// The verdicts.
const (
	Pass     Verdict = "pass"
	Fail     Verdict = "fail"
	Warn     Verdict = "warn"      // a SHOULD that does not hold
	NotShown Verdict = "not shown" // it could not be tested; the detail has the reason
	Info     Verdict = "info"      // an observation that is neither right nor wrong
)

// Case is one statement about a server.
type Case struct {
	// ID is the case's number in docs/conformance/README.md.
	ID string
	// Level is the importance of the case.
	Level Level
	// Source is the origin of the statement.
	Source string
	// Says is the statement.
	Says string
	// Fields are the members of the profile that affect the case.
	Fields []string
	// needs are the parts of the fixture contract that the case needs.
	needs []string
	// alone reports that no other case may run at the same time.
	alone bool
	// profile is the profile to which the case belongs; empty means all.
	profile string
	run     func(t *caseRun)
}

// failed returns the verdict for a case of the level that does not hold.
func (l Level) failed() Verdict {
	switch l {
	case Should:
		return Warn
	case May, Client:
		return Info
	case Must, Security, Promise:
		return Fail
	default:
		return Fail
	}
}
