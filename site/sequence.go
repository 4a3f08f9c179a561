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

// phone is the width of a sequence diagram on a phone, whose texts may cross the lifelines.
const phone = 350.0

type sequence struct {
	compact  bool     // for a phone
	names    []string // as the source calls the participants
	titles   [][]string
	steps    []step
	numbered bool
	// x is the place of each participant.
	x []float64
}

// drawSequence draws a sequence diagram twice: for a wide page and for a phone.
func drawSequence(b *bytes.Buffer, lines []string) error {
	wide, compact := &sequence{}, &sequence{compact: true}
	for _, line := range lines {
		err := wide.parse(line)
		if err == nil {
			err = compact.parse(line)
		}
		if err != nil {
			return err
		}
	}
	var told []string
	for _, st := range wide.steps {
		if st.kind == "message" || st.kind == "note" {
			told = append(told, strings.Join(st.text, " "))
		}
	}
	var pictures [2]drawing
	for i, s := range []*sequence{wide, compact} {
		s.arrange()
		s.draw(&pictures[i])
	}
	writeDiagram(b, strings.Join(told, "; "), pictures[:]...)
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
		s.names, s.titles = append(s.names, m[2]), append(s.titles, wrap(title, s.limit(150, 80)))
		return nil
	}
	if m := messageLine.FindStringSubmatch(line); m != nil {
		return s.add(step{kind: "message", dashed: m[2] == "--", lost: m[3] == "x", text: wrap(m[5], s.limit(wrapAt, 240))}, m[1], m[4])
	}
	if m := noteLine.FindStringSubmatch(line); m != nil {
		to := m[3]
		if to == "" {
			to = m[2]
		}
		if m[1] != "over" {
			return fmt.Errorf("a note beside a participant is not drawn: %q", line)
		}
		return s.add(step{kind: "note", text: wrap(m[4], s.limit(wrapAt, 260))}, m[2], to)
	}
	if m := frameLine.FindStringSubmatch(line); m != nil {
		st := step{kind: m[1]}
		if m[1] != "rect" {
			text := m[1] + ": " + m[2]
			if m[1] == "else" {
				text = m[2]
			}
			st.text = wrap(text, s.limit(500, 300))
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

// limit is the width at which a text is wrapped.
func (s *sequence) limit(wide, compact float64) float64 {
	if s.compact {
		return compact
	}
	return wide
}

// arrange places the participants so far apart that titles and texts fit. On a phone it places
// them at equal distances.
func (s *sequence) arrange() {
	if s.compact {
		for i := range s.names {
			s.x = append(s.x, phone*(float64(i)+0.5)/float64(len(s.names)))
		}
		s.x = append(s.x, phone)
		return
	}
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
	height := 6 + float64(rows)*lineHeight + 10
	width := s.x[len(s.names)]
	level := height + 4
	levels := s.titleLevels()
	front, back := &drawing{}, &drawing{}
	y := s.drawSteps(front, back, 8+height+level*float64(levels-1)+14)
	d.Write(back.Bytes())
	for i, x := range s.x[:len(s.names)] {
		fmt.Fprintf(d, `<path d="M%.1f %.1fV%.1f" class="lifeline"/>`, x, 8+height+level*float64(i%levels), y)
	}
	for i, title := range s.titles {
		top := 8 + level*float64(i%levels)
		middle, half := s.title(i)
		d.box(middle-half, top, 2*half, height, "box")
		d.text(middle, top+(height-float64(len(title)-1)*lineHeight)/2+4.5, "middle", "", title)
	}
	d.Write(front.Bytes())
	d.grow(width, y+10)
}

// title returns the middle and half of the width of the box of a participant.
func (s *sequence) title(i int) (middle, half float64) {
	half = widest(s.titles[i])/2 + 10
	return s.inside(s.x[i], half+1), half
}

// titleLevels is among how many rows the titles must be shared out in turn, so that no box is on
// another one.
func (s *sequence) titleLevels() int {
	for levels := 1; ; levels++ {
		fits := true
		for i := levels; i < len(s.titles); i++ {
			left, half := s.title(i - levels)
			right, other := s.title(i)
			fits = fits && left+half+4 <= right-other
		}
		if fits {
			return levels
		}
	}
}

// inside moves the middle of a text so that the text is inside the picture.
func (s *sequence) inside(middle, half float64) float64 {
	return math.Max(half, math.Min(middle, s.x[len(s.names)]-half))
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
			y += 9 + lineHeight*float64(len(st.text))
		default:
			open = append(open, frame{st.kind, y, inset})
			if st.kind != "rect" {
				front.text(inset+8, y+17, "start", "tag label", st.text)
				y += 3 + lineHeight*float64(len(st.text))
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
	half := widest(st.text)/2 + 8
	if st.from == st.to && s.compact { // the text is above the arrow
		turn := 26.0
		if from > phone-40 {
			turn = -turn
		}
		d.text(s.inside(from, half), y+12, "middle", "label", st.text)
		y += high + 10
		fmt.Fprintf(d, `<path d="M%.1f %.1fh%.1fv14h%.1f" class="%s"/>`, from, y, turn, -turn*0.85, class)
		d.arrowHead(from+math.Copysign(3, turn), y+14, math.Atan2(0, -turn))
		s.drawNumber(d, from, y, number)
		return y + 26
	}
	if st.from == st.to {
		fmt.Fprintf(d, `<path d="M%.1f %.1fh26v%.1fh-22" class="%s"/>`, from, y+10, high, class)
		d.arrowHead(from+3, y+10+high, math.Pi)
		d.text(from+34, y+10+lineHeight/2+3, "start", "label", st.text)
		s.drawNumber(d, from, y+10, number)
		return end + 10
	}
	if s.compact { // the text may be above the number
		y += 3
		high += 5
		end += 8
	}
	line, angle, tip := y+high+4, 0.0, to-2
	if to < from {
		angle, tip = math.Pi, to+2
	}
	d.text(s.inside((from+to)/2, half), y+12, "middle", "label", st.text)
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
	middle := s.inside((low+high)/2, half+6)
	height := float64(len(st.text))*lineHeight + 9
	d.box(middle-half, y+6, 2*half, height, "note")
	d.text(middle, y+6+lineHeight, "middle", "", st.text)
	return y + height + 14
}
