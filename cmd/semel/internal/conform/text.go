package conform

import (
	"fmt"
	"net/http"
	"strings"
)

// describe is got in few words.
func describe(got *answer) string {
	text := strings.TrimSpace(fmt.Sprintf("%d %s", got.status, http.StatusText(got.status)))
	if code := errorCode(got); code != "" {
		text += " (" + code + ")"
	}
	return text
}

// wantedStatuses is what the profile says that the codes are answered with.
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
		return "not at all"
	case 1:
		return "once"
	default:
		return fmt.Sprintf("%d times", n)
	}
}
