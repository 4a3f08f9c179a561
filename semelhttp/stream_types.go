package semelhttp

import (
	"slices"
	"strings"
)

// everyType in Options.StreamTypes makes every flushed response a stream.
const everyType = "*"

// streamTypes returns the media types of responses that are streams, in lower case.
func streamTypes(more []string) []string {
	types := []string{
		"text/event-stream", "application/x-ndjson", "application/jsonl", "application/grpc", "multipart/x-mixed-replace",
	}
	for _, t := range more {
		types = append(types, strings.ToLower(strings.TrimSpace(t)))
	}
	return types
}

// isStream reports whether a response with these lines of Content-Type is a stream.
func isStream(lines, types []string) bool {
	name, _, _ := strings.Cut(strings.Join(lines, ";"), ";")
	return slices.Contains(types, everyType) || slices.Contains(types, strings.ToLower(strings.TrimSpace(name)))
}
