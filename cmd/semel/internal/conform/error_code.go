package conform

import "encoding/json"

// hasCode reports whether the body of got has that code, or no code. A body
// written by the fixture itself, which contains the op, has no code.
func (t *caseRun) hasCode(got *answer, code string) bool {
	var acted struct {
		Op string `json:"op"`
	}
	if json.Unmarshal(got.body, &acted) == nil && acted.Op != "" {
		return false
	}
	if t.profile.Errors == "stripe" {
		code = stripeCode(code)
	}
	said := errorCode(got)
	return said == "" || said == code
}

// errorCode returns the code in an error body; empty if there is none.
func errorCode(got *answer) string {
	var body struct {
		Code  string `json:"code"`
		Error struct {
			Code string `json:"code"`
			Type string `json:"type"`
		} `json:"error"`
	}
	if json.Unmarshal(got.body, &body) != nil {
		return ""
	}
	return orDefault(body.Code, orDefault(body.Error.Code, body.Error.Type))
}
