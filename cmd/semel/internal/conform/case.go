package conform

import "slices"

// Level is how much a case weighs.
type Level string

// The levels.
const (
	Must     Level = "MUST"     // the draft asks for it, or the syntax it rests on does
	Should   Level = "SHOULD"   // the draft asks for it unless there is a reason
	May      Level = "MAY"      // the draft allows it
	Security Level = "security" // what the draft's security section, or good practice, comes to
	Promise  Level = "profile"  // the draft is silent; the server's profile says it
	Client   Level = "client"   // speaks of clients, and cannot be shown of a server
)

// Verdict is what became of a case.
type Verdict string

// The verdicts.
const (
	Pass     Verdict = "pass"
	Fail     Verdict = "fail"
	Warn     Verdict = "warn"      // a SHOULD that was not followed
	NotShown Verdict = "not shown" // nothing was found out; the reason is given
	Info     Verdict = "info"      // found out, and neither right nor wrong
)

// Case is one statement about a server.
type Case struct {
	// ID is its number, as in docs/conformance/README.md.
	ID string
	// Level is how much it weighs.
	Level Level
	// Source is where the statement comes from.
	Source string
	// Says is the statement.
	Says string
	// Fields are the members of the profile that it depends on.
	Fields []string
	// needs are the parts that the server must offer.
	needs []string
	// alone says that no other case may run meanwhile.
	alone bool
	// profile is the one the case is for; empty: all.
	profile string
	run     func(t *caseRun)
}

// failed is the verdict of a case of that level that did not hold.
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

// Cases returns all cases that are for the profile of that name, in order.
func Cases(profile string) []Case {
	all := slices.Concat(
		syntaxCases(), keyCases(), scopeCases(), timeCases(), fingerprintCases(), repeatCases(), concurrencyCases(),
		errorCases(), securityCases(), faultCases(), stripeCases(),
	)
	return slices.DeleteFunc(all, func(c Case) bool { return c.profile != "" && c.profile != profile })
}
