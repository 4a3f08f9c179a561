// An HTTP adapter that is written outside of the library's module, so it can use
// nothing but what packages semel and adapter export.
module example.com/edge

go 1.25.0

require github.com/semelgo/semel v0.0.0

replace github.com/semelgo/semel => ../..
