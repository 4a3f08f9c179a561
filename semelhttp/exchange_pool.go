package semelhttp

import "sync"

// maxPooled is the largest buffer that is kept for another exchange, in bytes, so
// that a few large requests do not use memory for ever.
const maxPooled = 64 << 10

// exchanges are reused for one request after the other. Memory that a function of
// the application may reach is not part of them: a goroutine that the function left
// behind would see the next caller's request or response.
type exchanges struct{ pool sync.Pool }

// get returns an exchange with empty buffers only.
func (p *exchanges) get() *exchange {
	if x, ok := p.pool.Get().(*exchange); ok {
		return x
	}
	return new(exchange)
}

// put takes back an exchange that the application cannot reach. No code may use x,
// or memory of x, afterwards.
func (p *exchanges) put(x *exchange) {
	if cap(x.text) > maxPooled || cap(x.held) > maxPooled {
		return
	}
	if x.exposed == nil { // a request that was answered from the cache sets little else
		x.w, x.r, x.in, x.text = nil, nil, validRequest{}, x.text[:0]
	} else {
		*x = exchange{text: x.text[:0], held: x.held[:0], fresh: x.fresh}
	}
	p.pool.Put(x)
}
