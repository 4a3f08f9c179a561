package main

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

// The statements of a sequence diagram.
var (
	participantLine = regexp.MustCompile(`^(actor|participant) (\w+)(?: as (.+))?$`)
	messageLine     = regexp.MustCompile(`^(\w+)(--?)(>>|x)(\w+): ?(.+)$`)
	noteLine        = regexp.MustCompile(`^Note (over|left of|right of) (\w+)(?:, ?(\w+))?: ?(.+)$`)
	frameLine       = regexp.MustCompile(`^(rect|loop|alt|opt|else)(?: (.*))?$`)
)

// step is one statement of a sequence diagram below the participants.
type step struct {
	kind     string // message, note, end, or a word of frameLine
	from, to int    // participants
	dashed   bool
	lost     bool // the arrow ends in a cross
	text     []string
}

type sequence struct {
	names    []string // as the source calls the participants
	titles   [][]string
	steps    []step
	numbered bool
	// x is the place of each participant.
	x []float64
}

// drawSequence draws a sequence diagram.
func drawSequence(b *bytes.Buffer, lines []string) error {
	s := &sequence{}
	for _, line := range lines {
		if err := s.parse(line); err != nil {
			return err
		}
	}
	s.arrange()
	d := &drawing{}
	s.draw(d)
	var told []string
	for _, st := range s.steps {
		if st.kind == "message" || st.kind == "note" {
			told = append(told, strings.Join(st.text, " "))
		}
	}
	d.writeTo(b, strings.Join(told, "; "))
	return nil
}

func (s *sequence) parse(line string) error {
	if line == "" {
		return nil
	}
	if line == "autonumber" {
		s.numbered = true
		return nil
	}
	if line == "end" {
		s.steps = append(s.steps, step{kind: "end"})
		return nil
	}
	if m := participantLine.FindStringSubmatch(line); m != nil {
		title := m[3]
		if title == "" {
			title = m[2]
		}
		s.names, s.titles = append(s.names, m[2]), append(s.titles, wrap(title, 150))
		return nil
	}
	if m := messageLine.FindStringSubmatch(line); m != nil {
		return s.add(step{kind: "message", dashed: m[2] == "--", lost: m[3] == "x", text: wrap(m[5], wrapAt)}, m[1], m[4])
	}
	if m := noteLine.FindStringSubmatch(line); m != nil {
		to := m[3]
		if to == "" {
			to = m[2]
		}
		if m[1] != "over" {
			return fmt.Errorf("a note beside a participant is not drawn: %q", line)
		}
		return s.add(step{kind: "note", text: wrap(m[4], wrapAt)}, m[2], to)
	}
	if m := frameLine.FindStringSubmatch(line); m != nil {
		st := step{kind: m[1]}
		if m[1] != "rect" {
			st.text = wrap(m[2], 500)
		}
		s.steps = append(s.steps, st)
		return nil
	}
	return fmt.Errorf("unknown statement of a sequence diagram: %q", line)
}

func (s *sequence) add(st step, from, to string) error {
	st.from, st.to = slices.Index(s.names, from), slices.Index(s.names, to)
	if st.from < 0 || st.to < 0 {
		return fmt.Errorf("%q or %q is not declared as a participant", from, to)
	}
	s.steps = append(s.steps, st)
	return nil
}

// arrange places the participants so far apart that titles and texts fit.
func (s *sequence) arrange() {
	gaps := make([]float64, len(s.names)+1) // gaps[i] is before participant i
	half := func(i int) float64 { return math.Max(widest(s.titles[i])/2+12, 40) }
	for i := range s.names {
		gaps[i] = half(i) + 10
		if i > 0 {
			gaps[i] += half(i - 1)
		}
		gaps[i+1] = half(i) + 10
	}
	steps := slices.Clone(s.steps)
	slices.SortStableFunc(steps, func(a, b step) int { return span(a) - span(b) })
	for _, st := range steps {
		need := widest(st.text) + 34
		low, high := min(st.from, st.to)+1, max(st.from, st.to)
		switch {
		case st.kind != "message" && st.kind != "note":
			continue
		case st.kind == "note" && span(st) == 0:
			gaps[st.from], gaps[st.from+1] = math.Max(gaps[st.from], need/2), math.Max(gaps[st.from+1], need/2)
			continue
		case span(st) == 0: // a message to itself is written to the right
			gaps[st.from+1] = math.Max(gaps[st.from+1], need+34)
			continue
		}
		has := 0.0
		for i := low; i <= high; i++ {
			has += gaps[i]
		}
		for i := low; i <= high; i++ {
			gaps[i] += math.Max(0, need-has) / float64(high-low+1)
		}
	}
	at := 0.0
	for i := range s.names {
		at += gaps[i]
		s.x = append(s.x, at)
	}
	s.x = append(s.x, at+gaps[len(s.names)]) // the width
}

func span(st step) int { return max(st.from, st.to) - min(st.from, st.to) }

// draw writes frames and lifelines first, so that messages are above them.
func (s *sequence) draw(d *drawing) {
	rows := 1
	for _, t := range s.titles {
		rows = max(rows, len(t))
	}
	top := 14 + float64(rows)*lineHeight + 10
	front, back := &drawing{}, &drawing{}
	y := s.drawSteps(front, back, top+14)
	width := s.x[len(s.names)]
	d.Write(back.Bytes())
	for i, title := range s.titles {
		fmt.Fprintf(d, `<path d="M%.1f %.1fV%.1f" class="lifeline"/>`, s.x[i], top, y)
		half := widest(title)/2 + 12
		d.box(s.x[i]-half, 8, 2*half, top-8, "box")
		d.text(s.x[i], 8+(top-8-float64(len(title)-1)*lineHeight)/2+4.5, "middle", "", title)
	}
	d.Write(front.Bytes())
	d.grow(width, y+10)
}

// drawSteps returns the height at which the last step ends.
func (s *sequence) drawSteps(front, back *drawing, y float64) float64 {
	type frame struct {
		kind  string
		top   float64
		inset float64
	}
	var open []frame
	right, number := s.x[len(s.names)], 0
	for _, st := range s.steps {
		inset := 4 + 5*float64(len(open))
		switch st.kind {
		case "message":
			number++
			y = s.drawMessage(front, st, number, y)
		case "note":
			y = s.drawNote(front, st, y)
		case "end":
			f := open[len(open)-1]
			open = open[:len(open)-1]
			class := "frame"
			if f.kind == "rect" {
				class = "rect"
			}
			back.box(f.inset, f.top, right-2*f.inset, y+4-f.top, class)
			y += 12
		case "else":
			inset = open[len(open)-1].inset
			fmt.Fprintf(back, `<path d="M%.1f %.1fH%.1f" class="frame"/>`, inset, y+6, right-inset)
			front.text(inset+8, y+22, "start", "tag label", st.text)
			y += 26
		default:
			open = append(open, frame{st.kind, y, inset})
			if st.kind != "rect" {
				front.text(inset+8, y+17, "start", "tag label", []string{st.kind + ": " + strings.Join(st.text, " ")})
				y += 20
			}
			y += 4
		}
	}
	return y + 8
}

func (s *sequence) drawMessage(d *drawing, st step, number int, y float64) float64 {
	class := "line"
	if st.dashed {
		class += " dashed"
	}
	from, to := s.x[st.from], s.x[st.to]
	high := float64(len(st.text)) * lineHeight
	end := y + high + 12
	if st.from == st.to {
		fmt.Fprintf(d, `<path d="M%.1f %.1fh26v%.1fh-22" class="%s"/>`, from, y+10, high, class)
		d.arrowHead(from+3, y+10+high, math.Pi)
		d.text(from+34, y+10+lineHeight/2+3, "start", "label", st.text)
		s.drawNumber(d, from, y+10, number)
		return end + 10
	}
	line, angle, tip := y+high+4, 0.0, to-2
	if to < from {
		angle, tip = math.Pi, to+2
	}
	d.text((from+to)/2, y+12, "middle", "label", st.text)
	if st.lost { // it ends before the participant
		tip -= 0.22 * (to - from)
		fmt.Fprintf(d, `<path d="M%.1f %.1fl10 10m0 -10l-10 10" class="line"/>`, tip-5, line-5)
	}
	fmt.Fprintf(d, `<path d="M%.1f %.1fH%.1f" class="%s"/>`, from, line, tip, class)
	if !st.lost {
		d.arrowHead(tip, line, angle)
	}
	s.drawNumber(d, from, line, number)
	return end + 2
}

func (s *sequence) drawNumber(d *drawing, x, y float64, number int) {
	if s.numbered {
		fmt.Fprintf(d, `<circle cx="%.1f" cy="%.1f" r="8.5" class="number"/>`, x, y)
		d.text(x, y+3.6, "middle", "numeral", []string{fmt.Sprint(number)})
	}
}

func (s *sequence) drawNote(d *drawing, st step, y float64) float64 {
	low, high := s.x[min(st.from, st.to)], s.x[max(st.from, st.to)]
	half := math.Max(widest(st.text)/2+12, (high-low)/2+20)
	middle := (low + high) / 2
	height := float64(len(st.text))*lineHeight + 9
	d.box(middle-half, y+6, 2*half, height, "note")
	d.text(middle, y+6+lineHeight, "middle", "", st.text)
	return y + height + 14
}
