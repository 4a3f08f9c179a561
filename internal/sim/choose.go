package sim

import (
	"fmt"
	"strings"
)

// digits write a script: one digit for each choice.
const digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// chooser enumerates all combinations of choices. It follows its script and
// takes the first option at each new point; next advances the script like an
// odometer.
type chooser struct {
	script  []uint8 // the way taken at each point so far
	options []uint8 // how many there were
	pos     int
	astray  bool // the script does not fit the run
}

// choose returns one of n options. A point with one option is not in the
// script. If the script names an option that does not exist, the chooser is
// astray and takes the first option.
func (c *chooser) choose(n int) int {
	if n <= 1 {
		return 0
	}
	if c.pos == len(c.script) {
		c.script = append(c.script, 0)
	}
	if c.pos == len(c.options) {
		c.options = append(c.options, uint8(n))
	}
	event := int(c.script[c.pos])
	c.pos++
	if event >= n || int(c.options[c.pos-1]) != n || n > len(digits) {
		c.astray = true
		return 0
	}
	return event
}

// fresh reports whether no earlier run has made the next choice.
func (c *chooser) fresh() bool { return c.pos >= len(c.script) }

// next advances to the next combination and reports whether there is one.
// Points after the end of the last run are dropped.
func (c *chooser) next() bool {
	last := c.pos - 1
	for last >= 0 && c.script[last]+1 >= c.options[last] {
		last--
	}
	c.pos = 0
	c.script, c.options = c.script[:last+1], c.options[:last+1]
	if last < 0 {
		return false
	}
	c.script[last]++
	return true
}

// String writes the choices made so far; the first options at its end are left out.
func (c *chooser) String() string { return formatScript(c.script[:c.pos]) }

func formatScript(script []uint8) string {
	var b strings.Builder
	for _, event := range script {
		b.WriteByte(digits[event])
	}
	return strings.TrimRight(b.String(), digits[:1])
}

// parseScript parses a formatted script.
func parseScript(text string) ([]uint8, error) {
	script := make([]uint8, 0, len(text))
	for i, r := range text {
		event := strings.IndexRune(digits, r)
		if event < 0 {
			return nil, fmt.Errorf("read script: %q at %d is no choice", r, i)
		}
		script = append(script, uint8(event))
	}
	return script, nil
}
