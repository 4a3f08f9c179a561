package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"strings"
	"unicode/utf8"
)

const (
	lineHeight = 17.0
	// wrapAt is the width at which text in a diagram is wrapped.
	wrapAt = 190.0
	// fitting is the largest width of a diagram that is made smaller on a page that is
	// narrower. The page scrolls wider ones, whose text would be too small.
	fitting = 1150.0
)

// diagram draws a Mermaid diagram as SVG. It knows the statements that the pages use; any
// other is an error, so that a page never lacks a part of its diagram.
func diagram(b *bytes.Buffer, source string) error {
	lines := strings.Split(strings.TrimSpace(source), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	switch lines[0] {
	case "sequenceDiagram":
		return drawSequence(b, lines[1:])
	case "flowchart TD", "stateDiagram-v2":
		return drawGraph(b, lines[1:])
	default:
		return fmt.Errorf("unknown kind of diagram: %q", lines[0])
	}
}

// drawing collects SVG elements, and the size that they need.
type drawing struct {
	bytes.Buffer
	width, height float64
}

// grow makes the drawing large enough for the point.
func (d *drawing) grow(x, y float64) { d.width, d.height = math.Max(d.width, x), math.Max(d.height, y) }

// writeDiagram writes a picture with its text as the description. A second picture is for phones.
func writeDiagram(b *bytes.Buffer, description string, pictures ...drawing) {
	b.WriteString(`<div class="diagram" tabindex="0">`)
	for i := range pictures {
		d := &pictures[i]
		class := ""
		if d.width <= fitting {
			class = "fits"
		}
		if len(pictures) > 1 {
			class += []string{" wide", " phone"}[i]
		}
		fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" class="%s" role="img" aria-label="%s" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f">`,
			class, html.EscapeString(description), d.width, d.height, d.width, d.height)
		b.WriteString(d.String())
		b.WriteString("</svg>")
	}
	b.WriteString("</div>\n")
}

// text writes lines, the first at the height y.
func (d *drawing) text(x, y float64, anchor, class string, lines []string) {
	for i, line := range lines {
		fmt.Fprintf(d, `<text x="%.1f" y="%.1f" text-anchor="%s" class="%s">%s</text>`, x, y+float64(i)*lineHeight, anchor, class, html.EscapeString(line))
	}
}

func (d *drawing) box(x, y, width, height float64, class string) {
	fmt.Fprintf(d, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="5" class="%s"/>`, x, y, width, height, class)
}

// arrowHead writes the head of an arrow that ends at a point and comes from an angle.
func (d *drawing) arrowHead(x, y, angle float64) {
	left, right := angle+2.7, angle-2.7
	fmt.Fprintf(d, `<path d="M%.1f %.1fL%.1f %.1fL%.1f %.1fZ" class="head"/>`,
		x, y, x+9*math.Cos(left), y+9*math.Sin(left), x+9*math.Cos(right), y+9*math.Sin(right))
}

// textWidth is about the width of a line of text: the font of the reader is not known here.
func textWidth(line string) (width float64) {
	for _, r := range line {
		switch {
		case r >= 0x2E80:
			width += 13.2
		case strings.ContainsRune("ijl.,:;'|()[]! ", r):
			width += 4.3
		case strings.ContainsRune("mwMW@", r) || r >= 'A' && r <= 'Z':
			width += 9.4
		default:
			width += 7.2
		}
	}
	return width
}

func widest(lines []string) (width float64) {
	for _, line := range lines {
		width = math.Max(width, textWidth(line))
	}
	return width
}

// wrap splits text at <br/>, and at spaces or between Chinese characters where it is too long.
func wrap(text string, limit float64) (lines []string) {
	for part := range strings.SplitSeq(text, "<br/>") {
		line, cut := "", 0
		for i, r := range part {
			switch {
			case r == ' ':
				cut = len(line)
			case r >= 0x2E80 && !strings.ContainsRune("，。；：、）", r):
				cut = len(line)
			}
			line += string(r)
			if textWidth(line) > limit && cut > 0 && i+utf8.RuneLen(r) < len(part) {
				lines = append(lines, strings.TrimSpace(line[:cut]))
				line, cut = strings.TrimLeft(line[cut:], " "), 0
			}
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}
