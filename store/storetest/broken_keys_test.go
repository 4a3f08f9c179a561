package storetest_test

import (
	"errors"
	"strings"

	"github.com/semelgo/semel/store"
)

// brokenKeys change the identity of a record.
func brokenKeys() []brokenStore {
	return []brokenStore{
		{"a space taken for nothing", "Keys/Empty", rewritesKeys(func(key string) string {
			if key == " " {
				return ""
			}
			return key
		})},
		{"keys whose last NULs are cut", "Keys/NUL", rewritesKeys(func(key string) string {
			return strings.TrimRight(key, "\x00")
		})},
		{"keys that are made valid UTF-8", "Keys/InvalidUTF8", rewritesKeys(func(key string) string {
			return strings.ToValidUTF8(key, "\ufffd")
		})},
		{"keys that are folded", "Keys/SimilarKeys", rewritesKeys(lower)},
		{"keys whose line ends are cut", "Keys/Space", rewritesKeys(func(key string) string {
			return strings.TrimRight(key, "\t\r\n")
		})},
		{"keys that are unquoted", "Keys/Quotes", rewritesKeys(func(key string) string {
			return strings.ReplaceAll(key, `\\`, `\`)
		})},
		{"names joined by a colon", "Keys/Separators", joinsNames},
		{"keys that are cut at 200 bytes", "Keys/Longest", rewritesKeys(func(key string) string {
			return key[:min(len(key), 200)]
		})},
		{"long keys that are cut and taken", "Keys/TooLong", func(h *hooked) {
			h.changing(func(c *store.Change, _ store.Record) { c.To.Key = c.To.Key[:min(len(c.To.Key), store.MaxKey)] })
		}},
	}
}

func rewritesKeys(rewrite func(key string) string) func(h *hooked) {
	return func(h *hooked) {
		h.reads = func(r *store.Record) { r.Key = rewrite(r.Key) }
	}
}

// lower folds ASCII letters and keeps all other bytes.
func lower(s string) string {
	folded := []byte(s)
	for i, b := range folded {
		if 'A' <= b && b <= 'Z' {
			folded[i] += 'a' - 'A'
		}
	}
	return string(folded)
}

// joinsNames treats two records as one if their joined names are equal.
func joinsNames(h *hooked) {
	first := make(map[string]store.ID)
	h.changing(func(c *store.Change, _ store.Record) {
		if !isCreate(*c) {
			return
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		joined := c.To.Operation + "|" + c.To.Scope + ":" + c.To.Key
		if id, known := first[joined]; known {
			c.To.ID = id
		}
		first[joined] = c.To.ID
	})
}

// brokenBatch are broken for many changes in one call.
func brokenBatch() []brokenStore {
	return []brokenStore{
		{"one bad item that fails its neighbours", "Batch/InvalidChange", func(h *hooked) {
			h.answers = func(_ []store.Change, as []store.SwapResult) ([]store.SwapResult, error) {
				for _, a := range as {
					if a.Err != nil && len(as) > 1 {
						return nil, a.Err
					}
				}
				return as, nil
			}
		}},
		{"a batch in which the last of two wins", "Batch/DuplicateIDs", func(h *hooked) { h.swapOne, h.twice = h.one, true }},
		{"a batch of any size", "Batch/TooMany", func(h *hooked) { h.swapOne, h.many = h.one, true }},
		{"a batch in a transaction in which the first of two wins", "BatchTx/DuplicateIDs", func(h *hooked) { h.twiceTx = true }},
		{"a large batch that is busy as a whole", "BatchTx/OneBusy", func(h *hooked) {
			h.answers = func(_ []store.Change, as []store.SwapResult) ([]store.SwapResult, error) {
				for _, a := range as {
					if a.Busy && len(as) > 16 {
						return nil, errors.New("lock timeout")
					}
				}
				return as, nil
			}
		}},
	}
}
