package conform

import (
	"fmt"
	"net/http"
	"strings"
)

// describe returns got in a few words.
func describe(got *answer) string {
	text := strings.TrimSpace(fmt.Sprintf("%d %s", got.status, http.StatusText(got.status)))
	if code := errorCode(got); code != "" {
		text += " (" + code + ")"
	}
	return text
}

// wantedStatuses lists the profile's statuses for the codes.
func (t *caseRun) wantedStatuses(codes []string) string {
	var all []string
	for _, code := range codes {
		text := fmt.Sprintf("%d (%s)", t.profile.Statuses[code], code)
		all = append(all, text)
	}
	return strings.Join(all, " or ")
}

func times(n int) string {
	switch n {
	case 0:
		return "0 times"
	case 1:
		return "once"
	default:
		return fmt.Sprintf("%d times", n)
	}
}
