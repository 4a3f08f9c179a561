package wire_test

import (
	"strings"
	"testing"

	"github.com/semelgo/semel/semelhttp/internal/wire"
)

func TestParseKey(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("k", 255)
	for line, want := range map[string]string{
		`"8e03978e-40d5-43e8-bc93-6894a57f9324"`: "8e03978e-40d5-43e8-bc93-6894a57f9324",
		`8e03978e-40d5-43e8-bc93-6894a57f9324`:   "8e03978e-40d5-43e8-bc93-6894a57f9324",
		`abc`:                                    "abc",
		`"abc"`:                                  "abc",
		" \t \"abc\"  \t":                        "abc",
		"\t abc \t":                              "abc",
		`"a\"b"`:                                 `a"b`,
		`a"b`:                                    `a"b`,
		`"a\\b"`:                                 `a\b`,
		`a\b`:                                    `a\b`,
		`"k1";v=2`:                               "k1",
		`"k1"; v=2;w="x;y"`:                      "k1",
		`"k1";v=2 `:                              "k1",
		`k1;v=2`:                                 "k1;v=2", // raw: every character counts
		`"k 1"`:                                  "k 1",
		`k 1`:                                    "k 1",
		`"a,b"`:                                  "a,b",
		`"a, b"`:                                 "a, b",
		`a:{x}*/../%00;--'`:                      "a:{x}*/../%00;--'",
		`:YWJj:`:                                 ":YWJj:",
		`?1`:                                     "?1",
		longest:                                  longest,
		`"` + longest + `"`:                      longest,
		`"` + strings.Repeat(`\"`, 255) + `"`:    strings.Repeat(`"`, 255),
	} {
		if got, reason := wire.ParseKey(line); got != want || reason != "" {
			t.Errorf("ParseKey(%q) = %q, %q, want %q", line, got, reason, want)
		}
	}
}

func TestParseKeyRefuses(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"nothing":                      "",
		"whitespace":                   " \t ",
		"empty string":                 `""`,
		"space inside quotes":          `" "`,
		"leading space inside quotes":  `" k"`,
		"trailing space inside quotes": `"k "`,
		"unterminated":                 `"abc`,
		"lone quote":                   `"`,
		"bad escape":                   `"a\x"`,
		"escaped end":                  `"abc\"`,
		"two items":                    `"a", "b"`,
		"two lines that were joined":   `a, a`,
		"joined without a space":       `a,a`,
		"a raw one and a quoted one":   `a, "b"`,
		"rest after the string":        `"a"b`,
		"bad parameter":                `"a";=`,
		"tab inside":                   "a\tb",
		"tab inside quotes":            "\"a\tb\"",
		"NUL":                          "a\x00b",
		"newline":                      "a\nb",
		"carriage return":              "\"a\rb\"",
		"DEL":                          "a\x7f",
		"DEL inside quotes":            "\"a\x7f\"",
		"UTF-8":                        "caf\u00e9",
		"UTF-8 inside quotes":          "\"caf\u00e9\"",
		"no-break space outside":       "\u00a0abc",
		"invalid UTF-8":                "a\xffb",
		"too long":                     strings.Repeat("k", 256),
		"too long inside quotes":       `"` + strings.Repeat("k", 256) + `"`,
		"ten megabytes":                strings.Repeat("k", 10<<20),
	} {
		if got, reason := wire.ParseKey(line); reason == "" {
			t.Errorf("%s: ParseKey = %.300q, want a reason against it", name, got)
		}
	}
}

// TestLongKeysAreNotTruncated: two keys that are equal in their first 255 characters
// are refused, not folded into one.
func TestLongKeysAreNotTruncated(t *testing.T) {
	t.Parallel()
	prefix := strings.Repeat("p", 255)
	for _, tail := range []string{"1", "2", strings.Repeat("x", 45)} {
		if got, reason := wire.ParseKey(prefix + tail); reason == "" {
			t.Errorf("a key of %d characters was taken as %d", len(prefix+tail), len(got))
		}
	}
}

func TestKeyErrorsDoNotRepeatTheKey(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"canary\x00", `"canary`, `"canary\x"`, "canary" + strings.Repeat("x", 300)} {
		_, reason := wire.ParseKey(line)
		if reason == "" || strings.Contains(reason, "canary") {
			t.Errorf("ParseKey(%.20q…) = %q, want a reason without the key", line, reason)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	for _, line := range []string{
		"", "abc", `"abc"`, `"a\"b\\c";p=1;q`, ` "k 1" `, `"k`, `"a\x"`, "a\tb", "caf\u00e9", `"a","b"`, `" k"`,
		"\"\\\"\"", ":YWJj:", strings.Repeat("k", 256), `"` + strings.Repeat(`\\`, 255) + `"`, "a\x00b",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		key, reason := wire.ParseKey(line)
		if reason != "" {
			return
		}
		if len(key) < 1 || len(key) > 255 || strings.Trim(key, " ") != key {
			t.Fatalf("ParseKey(%q) = %q, which is no key", line, key)
		}
		for i := range len(key) {
			if key[i] < 0x20 || key[i] > 0x7e {
				t.Fatalf("ParseKey(%q) = %q, which has %#x", line, key, key[i])
			}
		}
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
		if again, reason := wire.ParseKey(quoted); again != key || reason != "" {
			t.Fatalf("ParseKey(%q) = %q, %q, want %q: the two forms are one key", quoted, again, reason, key)
		}
		if !strings.HasPrefix(key, `"`) && !strings.Contains(key, ", ") {
			if again, reason := wire.ParseKey("\t" + key + " "); again != key || reason != "" {
				t.Fatalf("ParseKey of the raw form of %q = %q, %q", key, again, reason)
			}
		}
	})
}
