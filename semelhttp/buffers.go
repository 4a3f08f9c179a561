package semelhttp

import "sync"

// maxPooled is the largest buffer that is kept for another exchange, in bytes: a
// few large requests are not to be paid for ever.
const maxPooled = 64 << 10

// buffers are used for one exchange after the other. None is ever given to a
// function of the application, which may leave a goroutine behind: that would see
// what the next caller sends or is sent.
type buffers struct{ pool sync.Pool }

// buffer holds bytes of one exchange.
type buffer struct{ b []byte }

// get returns an empty buffer.
func (p *buffers) get() *buffer {
	if b, ok := p.pool.Get().(*buffer); ok {
		return b
	}
	return new(buffer)
}

// put takes b back. Nobody may use it, or what it held, any more.
func (p *buffers) put(b *buffer) {
	if b == nil || cap(b.b) > maxPooled {
		return
	}
	b.b = b.b[:0]
	p.pool.Put(b)
}
