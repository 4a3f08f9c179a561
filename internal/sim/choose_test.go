package sim

import (
	"slices"
	"testing"
)

func TestChooserTakesEveryCombinationOnce(t *testing.T) {
	t.Parallel()
	var c chooser
	var got []string
	for more := true; more; more = c.next() {
		run := []uint8{uint8(c.choose(3))}
		if run[0] != 1 { // how many points there are depends on the first
			run = append(run, uint8(c.choose(2)))
		}
		c.choose(1) // no choice
		got = append(got, formatScript(run))
	}
	want := []string{"", "01", "1", "2", "21"}
	if !slices.Equal(got, want) {
		t.Errorf("runs took %q, want %q", got, want)
	}
}

func TestChooserDropsWhatLiesAheadOfAShorterRun(t *testing.T) {
	t.Parallel()
	var c chooser
	c.choose(2)
	c.choose(3)
	c.pos = 1 // the run stopped after its first choice
	if !c.next() || c.choose(2) != 1 || !c.fresh() {
		t.Errorf("after a run that stopped early: %+v, want the second way of the first point", c)
	}
}

func TestChooserGoesAstrayWhenTheScriptDoesNotFit(t *testing.T) {
	t.Parallel()
	c := chooser{script: []uint8{4}}
	if got := c.choose(2); got != 0 || !c.astray {
		t.Errorf("choose(2) by script 4 = %d, astray %v; want 0, true", got, c.astray)
	}
}

func TestScriptsAreReadAsWritten(t *testing.T) {
	t.Parallel()
	script := []uint8{0, 9, 10, 35, 36, 61, 1}
	back, err := parseScript(formatScript(script))
	if err != nil || !slices.Equal(back, script) {
		t.Errorf("parseScript(written(%v)) = %v, %v", script, back, err)
	}
	if _, err := parseScript("01-2"); err == nil {
		t.Error("parseScript(01-2) took what is no choice")
	}
}
