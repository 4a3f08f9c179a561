package semelhttp

import "sync"

// maxPooled is the largest buffer that is kept for another exchange, in bytes: a
// few large requests are not to be paid for ever.
const maxPooled = 64 << 10

// exchanges are used for one request after the other. What a function of the
// application may reach, which can leave a goroutine behind, is no part of them: it
// would see what the next caller sends or is sent.
type exchanges struct{ pool sync.Pool }

// get returns an exchange with nothing but empty room in it.
func (p *exchanges) get() *exchange {
	if x, ok := p.pool.Get().(*exchange); ok {
		return x
	}
	return new(exchange)
}

// put takes x back, of which the application has nothing. Nobody may use it, or what
// it held, any more.
func (p *exchanges) put(x *exchange) {
	if cap(x.text) > maxPooled || cap(x.held) > maxPooled {
		return
	}
	if x.exposed == nil { // of one that was answered from memory little else is set
		x.w, x.r, x.in, x.text = nil, nil, admitted{}, x.text[:0]
	} else {
		*x = exchange{text: x.text[:0], held: x.held[:0], fresh: x.fresh}
	}
	p.pool.Put(x)
}
