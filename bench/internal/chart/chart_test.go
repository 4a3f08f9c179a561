package chart_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/semelgo/semel/bench/internal/chart"
)

// drawing is what a page says.
type drawing struct {
	Texts []struct {
		Class string  `xml:"class,attr"`
		X     float64 `xml:"x,attr"`
		Y     float64 `xml:"y,attr"`
		Text  string  `xml:",chardata"`
	} `xml:"text"`
	Lines []struct {
		Points string `xml:"points,attr"`
	} `xml:"polyline"`
	Description string `xml:"desc"`
}

func draw(t *testing.T, c chart.Chart) drawing {
	t.Helper()
	var b bytes.Buffer
	if err := c.Draw(&b); err != nil {
		t.Fatal(err)
	}
	var d drawing
	if err := xml.Unmarshal(b.Bytes(), &d); err != nil {
		t.Fatalf("%v in\n%s", err, &b)
	}
	for in := xml.NewDecoder(&b); ; { // to the end, or it is no document
		if _, err := in.Token(); errors.Is(err, io.EOF) {
			return d
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func (d drawing) labels(t *testing.T) map[string]float64 {
	t.Helper()
	labels := make(map[string]float64)
	for _, text := range d.Texts {
		if strings.HasPrefix(text.Class, "label") {
			labels[text.Text] = text.Y
		}
	}
	return labels
}

func twoLines(logY bool) chart.Chart {
	return chart.Chart{Title: "A < B & C", XLabel: "callers", LogY: logY, Series: []chart.Series{
		{Name: "ours", Points: []chart.Point{{1, 2000}, {8, 10_000}, {256, 61_234}}},
		{Name: "theirs", Points: []chart.Point{{1, 2000}, {8, 8000}, {256, 61_000}}},
		{Name: "slow", Points: []chart.Point{{1, 20}, {8, 30}, {256, 40}}},
	}}
}

// TestEachPointIsWhereItBelongs: within the page, more to the right, and no lower
// where it is more, on both scales.
func TestEachPointIsWhereItBelongs(t *testing.T) {
	t.Parallel()
	for _, logY := range []bool{false, true} {
		d := draw(t, twoLines(logY))
		if len(d.Lines) != 3 {
			t.Fatalf("%d lines, want 3", len(d.Lines))
		}
		for _, l := range d.Lines {
			lastX, lastY := 0.0, 1000.0
			for point := range strings.FieldsSeq(l.Points) {
				x, y := place(t, point)
				if x <= lastX || y > lastY || x > 760 || y < 60 || y > 360 {
					t.Errorf("log %t: (%v, %v) comes after (%v, %v)", logY, x, y, lastX, lastY)
				}
				lastX, lastY = x, y
			}
		}
	}
}

func place(t *testing.T, point string) (x, y float64) {
	t.Helper()
	a, b, _ := strings.Cut(point, ",")
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	if err != nil || err2 != nil {
		t.Fatalf("a point is %q", point)
	}
	return x, y
}

// TestNamesDoNotLieOnEachOther, though two lines end in nearly the same place,
// and none is below the axis.
func TestNamesDoNotLieOnEachOther(t *testing.T) {
	t.Parallel()
	at := draw(t, twoLines(false)).labels(t)
	if len(at) != 3 {
		t.Fatalf("names %v, want 3", at)
	}
	if apart := at["theirs"] - at["ours"]; apart < 15 {
		t.Errorf("the names are %v apart", apart)
	}
	if at["slow"] > 360 {
		t.Errorf("a name is at %v, below the axis", at["slow"])
	}
}

// TestTextsAreEscaped: texts are escaped, and the chart has a description with its
// values.
func TestTextsAreEscaped(t *testing.T) {
	t.Parallel()
	d := draw(t, twoLines(false))
	if got := d.Texts[0].Text; got != "A < B & C" {
		t.Errorf("the title is %q", got)
	}
	for _, want := range []string{"ours: 2000 at 1, 10k at 8, 61.2k at 256", "slow: 20 at 1"} {
		if !strings.Contains(d.Description, want) {
			t.Errorf("the description lacks %q: %s", want, d.Description)
		}
	}
}

// TestOnePointCanBeDrawn, where a scale has no length, and nothing cannot.
func TestOnePointCanBeDrawn(t *testing.T) {
	t.Parallel()
	for _, logY := range []bool{false, true} {
		for _, y := range []float64{1, 0.1, 61_234} {
			one := chart.Chart{Title: "one", LogY: logY, Series: []chart.Series{{Name: "a", Points: []chart.Point{{64, y}}}}}
			if x, _ := place(t, draw(t, one).Lines[0].Points); x < 70 || x > 560 {
				t.Errorf("log %t, %v: the point is at %v", logY, y, x)
			}
		}
	}
	if err := (chart.Chart{}).Draw(io.Discard); err == nil {
		t.Error("nothing was drawn")
	}
}
