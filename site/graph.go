package main

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

// The statements of flow charts and state diagrams.
var (
	nodeLine = regexp.MustCompile(`^(\w+)\["([^"]+)"\]$`)
	edgeLine = regexp.MustCompile(`^(\w+|\[\*\]) --> (\w+|\[\*\])(?: : (.+))?$`)
)

// node is a box, or the start or the end of a state diagram, or a bend of an edge that
// passes a layer.
type node struct {
	text          []string
	bend          bool
	layer         int
	x, y          float64
	width, height float64
	// margin is the space to the right for the text of an edge from the node to itself.
	margin float64
}

type edge struct {
	from, to *node
	text     []string
	// path is the nodes from the upper one to the lower one, with the bends between them.
	path []*node
	back bool // it leads upwards
}

type graph struct {
	names  map[string]*node
	order  []*node
	edges  []*edge
	layers [][]*node
}

// drawGraph draws boxes in layers: an edge leads downwards, except where it closes a circle.
func drawGraph(b *bytes.Buffer, lines []string) error {
	g := &graph{names: make(map[string]*node)}
	for _, line := range lines {
		if err := g.parse(line); err != nil {
			return err
		}
	}
	g.layer()
	g.route()
	g.sort()
	var d drawing
	g.place(&d)
	g.draw(&d)
	var told []string
	for _, n := range g.order {
		told = append(told, strings.Join(n.text, " "))
	}
	writeDiagram(b, strings.Join(told, "; "), d)
	return nil
}

func (g *graph) parse(line string) error {
	if m := nodeLine.FindStringSubmatch(line); m != nil {
		g.node(m[1], m[2])
		return nil
	}
	m := edgeLine.FindStringSubmatch(line)
	if m == nil {
		return fmt.Errorf("unknown statement of a graph: %q", line)
	}
	from, to := m[1], m[2]
	if to == "[*]" {
		to = "[end]"
	}
	e := &edge{from: g.node(from, from), to: g.node(to, to)}
	if m[3] != "" {
		e.text = wrap(m[3], 110)
	}
	g.edges = append(g.edges, e)
	return nil
}

// node returns the node of a name, and makes it if it is new.
func (g *graph) node(name, text string) *node {
	n, is := g.names[name]
	if !is {
		n = &node{text: wrap(text, 600)}
		n.width, n.height = widest(n.text)+28, float64(len(n.text))*lineHeight+16
		if strings.HasPrefix(name, "[") {
			n.text, n.width, n.height = nil, 16, 16
		}
		g.names[name] = n
		g.order = append(g.order, n)
	}
	return n
}

// layer finds the edges that close a circle, and puts each node below all that lead to it.
func (g *graph) layer() {
	const visiting, visited = 1, 2
	state := make(map[*node]int)
	var visit func(n *node)
	visit = func(n *node) {
		state[n] = visiting
		for _, e := range g.edges {
			if e.from != n {
				continue
			}
			e.back = state[e.to] == visiting
			if state[e.to] == 0 {
				visit(e.to)
			}
		}
		state[n] = visited
	}
	for _, n := range g.order {
		if state[n] == 0 {
			visit(n)
		}
	}
	for range g.order {
		for _, e := range g.edges {
			if !e.back && e.to.layer <= e.from.layer {
				e.to.layer = e.from.layer + 1
			}
		}
	}
}

// route gives each edge a bend in each layer that it passes, with room for its text.
func (g *graph) route() {
	for _, n := range g.order {
		g.put(n)
	}
	for _, e := range g.edges {
		upper, lower := e.from, e.to
		if e.back {
			upper, lower = lower, upper
		}
		e.path = []*node{upper}
		for layer := upper.layer + 1; layer < lower.layer; layer++ {
			n := &node{bend: true, layer: layer, width: 12}
			if layer == (upper.layer+lower.layer)/2 {
				n.width, n.height = widest(e.text)+12, float64(len(e.text))*lineHeight
			}
			g.put(n)
			e.path = append(e.path, n)
		}
		if lower == upper {
			upper.margin = 30 + widest(e.text)
			continue
		}
		e.path = append(e.path, lower)
	}
}

func (g *graph) put(n *node) {
	for len(g.layers) <= n.layer {
		g.layers = append(g.layers, nil)
	}
	g.layers[n.layer] = append(g.layers[n.layer], n)
}

// sort moves each node near the middle of its neighbors, some times down and up.
func (g *graph) sort() {
	g.number()
	for pass := range 12 {
		layers := slices.Clone(g.layers)
		if pass%2 == 1 {
			slices.Reverse(layers)
		}
		for _, layer := range layers {
			weight := make(map[*node]float64)
			for _, n := range layer {
				weight[n] = g.middle(n, pass%2 == 1)
			}
			slices.SortStableFunc(layer, func(a, b *node) int {
				return int(math.Copysign(math.Ceil(math.Abs(weight[a]-weight[b])*1000), weight[a]-weight[b]))
			})
			g.number()
		}
	}
}

// number sets x to the position in the layer.
func (g *graph) number() {
	for _, layer := range g.layers {
		for i, n := range layer {
			n.x = (float64(i) + 0.5) / float64(len(layer))
		}
	}
}

// middle is the mean of x of the neighbors above or below, or x itself without any.
func (g *graph) middle(n *node, below bool) float64 {
	sum, count := 0.0, 0
	for _, e := range g.edges {
		for i := 1; i < len(e.path); i++ {
			switch {
			case !below && e.path[i] == n:
				sum, count = sum+e.path[i-1].x, count+1
			case below && e.path[i-1] == n:
				sum, count = sum+e.path[i].x, count+1
			}
		}
	}
	if count == 0 {
		return n.x
	}
	return sum / float64(count)
}

// place turns positions into coordinates: layers below each other, each in the middle.
func (g *graph) place(d *drawing) {
	const gap = 34.0
	widths := make([]float64, len(g.layers))
	for i, layer := range g.layers {
		for _, n := range layer {
			widths[i] += n.width + n.margin + gap
		}
	}
	total, y := slices.Max(widths), 12.0
	for i, layer := range g.layers {
		high := 0.0
		for _, n := range layer {
			high = math.Max(high, n.height)
		}
		extra := (total - widths[i]) / float64(len(layer)+1)
		x := extra
		for _, n := range layer {
			n.x, n.y = x+(n.width+gap)/2, y+high/2
			x += n.width + n.margin + gap + extra
		}
		y += high + g.room(i)
	}
	d.grow(total, y)
}

// room is the space below a layer: for the texts of the edges that begin or end there.
func (g *graph) room(layer int) float64 {
	rows := 0
	for _, e := range g.edges {
		if len(e.path) == 2 && e.path[0].layer == layer {
			rows = max(rows, len(e.text))
		}
	}
	if layer == len(g.layers)-1 {
		return 12
	}
	return 40 + float64(rows)*lineHeight
}

func (g *graph) draw(d *drawing) {
	texts := &drawing{}
	for _, e := range g.edges {
		g.drawEdge(d, texts, e)
	}
	for _, n := range g.order {
		if n.text == nil {
			fmt.Fprintf(d, `<circle cx="%.1f" cy="%.1f" r="8" class="head"/>`, n.x, n.y)
			continue
		}
		d.box(n.x-n.width/2, n.y-n.height/2, n.width, n.height, "box")
		d.text(n.x, n.y-float64(len(n.text)-1)*lineHeight/2+4.5, "middle", "", n.text)
	}
	d.Write(texts.Bytes())
}

// drawEdge draws a curve through the bends. Edges between the same boxes leave them at
// different points.
func (g *graph) drawEdge(d, texts *drawing, e *edge) {
	if len(e.path) == 1 { // from a box to itself
		n := e.from
		x := n.x + n.width/2
		fmt.Fprintf(d, `<path d="M%.1f %.1fc30 -14 30 22 4 14" class="line"/>`, x, n.y-7)
		d.arrowHead(x+1, n.y+6, math.Pi)
		texts.text(x+26, n.y+4, "start", "label", e.text)
		return
	}
	upper, lower := e.path[0], e.path[len(e.path)-1]
	startX, endX := g.port(e, upper, true), g.port(e, lower, false)
	x, y := startX, upper.y+upper.height/2
	fmt.Fprintf(d, `<path d="M%.1f %.1f`, x, y)
	last := y
	for i, n := range e.path[1:] {
		toX, toY := n.x, n.y
		if i == len(e.path)-2 {
			toX, toY = endX, lower.y-lower.height/2
		}
		middle := (y + toY) / 2
		fmt.Fprintf(d, `C%.1f %.1f %.1f %.1f %.1f %.1f`, x, middle, toX, middle, toX, toY)
		last, x, y = y, toX, toY
	}
	d.WriteString(`" class="line"/>`)
	if e.back {
		d.arrowHead(startX, upper.y+upper.height/2, -math.Pi/2)
	} else {
		d.arrowHead(endX, y, math.Pi/2)
	}
	labelX, labelY := (startX+endX)/2, (last+y)/2
	if len(e.path) > 2 {
		n := e.path[(len(e.path)-1)/2]
		labelX, labelY = n.x, n.y
	}
	texts.text(labelX, labelY-float64(len(e.text)-1)*lineHeight/2+4, "middle", "label", e.text)
}

// port is the x of an edge at the lower side (below) or upper side of a box: the edges of a
// side are in the order of the nodes to which they lead.
func (g *graph) port(of *edge, n *node, below bool) float64 {
	var at []*edge
	for _, e := range g.edges {
		if len(e.path) > 1 && (below && e.path[0] == n || !below && e.path[len(e.path)-1] == n) {
			at = append(at, e)
		}
	}
	slices.SortStableFunc(at, func(a, b *edge) int {
		ax, bx := a.path[1].x, b.path[1].x
		if !below {
			ax, bx = a.path[len(a.path)-2].x, b.path[len(b.path)-2].x
		}
		return int(ax - bx)
	})
	share := float64(slices.Index(at, of)+1) / float64(len(at)+1)
	return n.x + (share-0.5)*math.Min(n.width, 40+30*float64(len(at)))
}
