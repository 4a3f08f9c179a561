// Package chart draws line charts as SVG, for light and dark pages. Lines differ by
// the shape of their points and have labels, so that they can be told apart without
// colours.
package chart

import (
	"bytes"
	_ "embed"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"
)

// Chart is a chart to draw.
type Chart struct {
	Title, Subtitle string
	// XLabel is the label of the horizontal axis. Its scale is logarithmic.
	XLabel string
	// LogY makes the vertical scale logarithmic. Otherwise it begins at zero.
	LogY   bool
	Series []Series
}

// Series is one line.
type Series struct {
	Name   string
	Points []Point // at least one, sorted by X
}

// Point is a point of a line. X must be positive, and with LogY Y, too.
type Point struct{ X, Y float64 }

//go:embed chart.svg.tmpl
var svg string

// Positions on the page, in pixels.
const (
	width, height = 760, 420
	left, right   = 70, 560
	top, bottom   = 68, 360
	between       = 18 // least distance between two labels
)

// Draw writes the chart. It fails if there are no points.
func (c Chart) Draw(w io.Writer) error {
	if len(c.Series) == 0 {
		return fmt.Errorf("draw %q: there are no lines", c.Title)
	}
	page, err := template.New("chart").Funcs(template.FuncMap{"xml": escape}).Parse(svg)
	if err != nil {
		return fmt.Errorf("draw %q: %w", c.Title, err)
	}
	return page.Execute(w, c.layout())
}

func escape(text string) (string, error) {
	var b bytes.Buffer
	err := xml.EscapeText(&b, []byte(text))
	return b.String(), err
}

// layout is the input of the template.
type layout struct {
	Chart

	Description                                                               string
	Width, Height, Left, Right, Bottom, Middle, TickX, TickY, TickEnd, UnderY float64
	XTicks, YTicks                                                            []tick
	Lines                                                                     []line
}

type tick struct {
	At   float64
	Text string
}

type line struct {
	Name           string
	Color          int
	Dashes, Points string
	Marks          []string
	LabelX, LabelY float64
}

func (c Chart) layout() layout {
	x, y := c.axes()
	l := layout{
		Chart: c, Description: c.describe(), Width: width, Height: height, Left: left, Right: right, Bottom: bottom,
		Middle: (left + right) / 2, TickX: left - 8, TickY: bottom + 22, TickEnd: bottom + 5, UnderY: bottom + 46,
	}
	for _, v := range x.ticks {
		l.XTicks = append(l.XTicks, tick{x.at(v), figure(v)})
	}
	for _, v := range y.ticks {
		l.YTicks = append(l.YTicks, tick{y.at(v), figure(v)})
	}
	for i, s := range c.Series {
		l.Lines = append(l.Lines, s.line(i, x, y))
	}
	spread(l.Lines)
	return l
}

func (s Series) line(i int, x, y axis) line {
	l := line{Name: s.Name, Color: i % 6, Dashes: []string{"", "6 4"}[i/6%2]}
	var points []string
	for _, p := range s.Points {
		px, py := x.at(p.X), y.at(p.Y)
		points = append(points, fmt.Sprintf("%.1f,%.1f", px, py))
		l.Marks = append(l.Marks, mark(i, px, py))
		l.LabelX, l.LabelY = px+12, py
	}
	l.Points = strings.Join(points, " ")
	l.LabelX = right + 12
	return l
}

// mark is the shape of a series' points: circle, square, triangle, diamond.
func mark(i int, x, y float64) string {
	switch i % 4 {
	case 0:
		return fmt.Sprintf("M%.1f,%.1f m-4,0 a4,4 0 1,0 8,0 a4,4 0 1,0 -8,0z", x, y)
	case 1:
		return fmt.Sprintf("M%.1f,%.1f m-4,-4 h8 v8 h-8z", x, y)
	case 2:
		return fmt.Sprintf("M%.1f,%.1f m0,-5 l5,9 h-10z", x, y)
	default:
		return fmt.Sprintf("M%.1f,%.1f m0,-5 l5,5 l-5,5 l-5,-5z", x, y)
	}
}

// spread moves labels apart that would overlap.
func spread(lines []line) {
	order := make([]*line, len(lines))
	for i := range lines {
		order[i] = &lines[i]
	}
	slices.SortStableFunc(order, func(a, b *line) int {
		return int(1000 * (a.LabelY - b.LabelY))
	})
	for i := 1; i < len(order); i++ {
		order[i].LabelY = max(order[i].LabelY, order[i-1].LabelY+between)
	}
	lowest := float64(bottom)
	for _, l := range slices.Backward(order) {
		l.LabelY = min(l.LabelY, lowest)
		lowest = l.LabelY - between
	}
}

// describe returns the values as text, for readers who cannot see the lines.
func (c Chart) describe() string {
	var said []string
	for _, s := range c.Series {
		var points []string
		for _, p := range s.Points {
			points = append(points, fmt.Sprintf("%s at %s", figure(p.Y), figure(p.X)))
		}
		said = append(said, s.Name+": "+strings.Join(points, ", "))
	}
	return c.Subtitle + ". " + strings.Join(said, "; ") + "."
}
