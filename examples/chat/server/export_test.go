package server

// What tests put a server together with.
type (
	Seams        = seams
	TransactFunc = transactFunc
	CreateFunc   = createFunc
)

// Run is Main with something in between.
var Run = run
