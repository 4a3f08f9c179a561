package semelhttp

import (
	"slices"
	"strings"
)

// streamTypes are the media types of responses that are streams, in lower case.
type streamTypes []string

const everyType = "*"

func newStreamTypes(more []string) streamTypes {
	types := streamTypes{
		"text/event-stream", "application/x-ndjson", "application/jsonl", "application/grpc", "multipart/x-mixed-replace",
	}
	for _, t := range more {
		types = append(types, strings.ToLower(strings.TrimSpace(t)))
	}
	return types
}

// has reports whether a response with these lines of Content-Type is a stream.
func (types streamTypes) has(lines []string) bool {
	if slices.Contains(types, everyType) {
		return true
	}
	if len(lines) == 0 {
		return false
	}
	name, _, _ := strings.Cut(lines[0], ";")
	return slices.Contains(types, strings.ToLower(strings.TrimSpace(name)))
}
