//go:build !race

package archtest_test

import (
	"slices"
	"strings"
	"testing"
)

// layer is a layer of the architecture. A package may import packages of layers
// above its own, which have a smaller number. Within its layer it may import
// only packages below its own unit.
type layer int

const (
	ground layer = iota
	contract
	mechanisms
	rules
	callErrors
	codecs
	events
	journals
	engines
	core
	overCore
	patterns
	conformance
	stores
	edgeParts // what the server's and the client's side of an edge share
	edges
	views // what programs for operators show
	surfaces
	programs
	repositoryTests // may import everything; no package may import them
)

// layers returns the layer of each unit. A name that ends in "/" stands for
// every directory below it, each of which is a unit. The longest match applies.
// A package without a unit fails the test.
func layers() map[string]layer {
	return map[string]layer{
		"internal/": ground,

		"store": contract,

		"internal/cache":      mechanisms,
		"internal/canonical":  mechanisms,
		"internal/lazyctx":    mechanisms,
		"internal/outboxsql":  mechanisms,
		"internal/realtest":   mechanisms,
		"internal/testchange": mechanisms,
		"internal/timers":     mechanisms,

		"internal/protocol": rules,

		"internal/callerr": callErrors,
		"internal/codec":   codecs,
		"event":            events,

		"journal":         journals,
		"internal/engine": engines,

		"semel": core,

		"adapter": overCore,
		"admin":   overCore,

		"inbox":   patterns,
		"task":    patterns,
		"outbox":  patterns,
		"onetime": patterns,
		"guard":   patterns,

		"store/storetest": conformance,

		"store/": stores,

		"semelhttp/internal/": edgeParts,

		"semelhttp":        edges,
		"semelhttp/client": edges,
		"semelgrpc":        edges,
		"semelwatermill":   edges,
		"semelotel":        edges,
		"semeltest/pin":    edges,

		"semeltest":           surfaces,
		"internal/recordview": views,

		"migrate":      surfaces,
		"console":      surfaces,
		"gateway":      surfaces,
		"internal/sim": surfaces,

		"internal/metricsserver": surfaces, // for programs

		"cmd/":                programs,
		"examples/":           programs,
		"internal/ledger":     programs,
		"internal/plainstore": programs,
		"bench":               programs,
		"test":                programs,

		"internal/archtest": repositoryTests,
		"internal/doctest":  repositoryTests,
	}
}

// unitOf returns the unit of a package, and the layer of the unit.
func unitOf(name string) (unit string, l layer, ok bool) {
	for prefix, at := range layers() {
		candidate := prefix
		if below, isBelow := strings.CutPrefix(name, prefix); strings.HasSuffix(prefix, "/") && isBelow {
			first, _, _ := strings.Cut(below, "/")
			candidate = prefix + first
		}
		if name != candidate && !strings.HasPrefix(name, candidate+"/") {
			continue
		}
		if len(candidate) > len(unit) || len(candidate) == len(unit) && !strings.HasSuffix(prefix, "/") {
			unit, l, ok = candidate, at, true
		}
	}
	return unit, l, ok
}

// TestLayersImportUpwardOnly is the import rule.
func TestLayersImportUpwardOnly(t *testing.T) {
	for _, p := range packages(t) {
		unit, at, ok := unitOf(p.short())
		if !ok {
			t.Errorf("%s is in no layer; add it to the table above", p.short())
			continue
		}
		for _, path := range p.Imports {
			if !ours(path) {
				continue
			}
			other, above, _ := unitOf(short(path))
			if other != unit && above >= at {
				t.Errorf("%s imports %s, which is not in a layer above it", p.short(), short(path))
			}
		}
	}
}

// TestEngineImports keeps the dependencies of the engine and of its public face
// small: the standard library, the layers between the contract and the root, and three
// packages of the ground layer.
func TestEngineImports(t *testing.T) {
	for _, p := range packages(t) {
		if p.short() != "semel" && p.short() != "internal/engine" {
			continue
		}
		for _, path := range p.Imports {
			_, at, _ := unitOf(short(path))
			small := slices.Contains([]string{"internal/clock", "internal/errtype", "internal/groupcommit"}, short(path))
			if !std(path) && !small && (!ours(path) || at == ground) {
				t.Errorf("%s imports %s", p.short(), path)
			}
		}
	}
}

// TestUpperLayersImportNoOtherModules: packages that all users import depend
// only on the standard library.
func TestUpperLayersImportNoOtherModules(t *testing.T) {
	for _, p := range packages(t) {
		unit, at, _ := unitOf(p.short())
		if at > patterns && unit != "store/memory" || unit == "internal/realtest" {
			continue
		}
		for _, path := range p.Imports {
			if !std(path) && !ours(path) {
				t.Errorf("%s imports %s; this layer imports the standard library and ours", p.short(), path)
			}
		}
	}
}

// TestStoreImports: a store cannot contain a rule of the protocol, because it
// cannot import the protocol.
func TestStoreImports(t *testing.T) {
	for _, p := range packages(t) {
		unit, at, _ := unitOf(p.short())
		if at != stores {
			continue
		}
		for _, path := range p.Imports {
			other, above, _ := unitOf(short(path))
			statements := short(path) == "internal/outboxsql" // which all stores with SQL share
			if ours(path) && other != unit && above != contract && above != ground && !statements {
				t.Errorf("%s imports %s; a store imports package store and its driver", p.short(), short(path))
			}
		}
	}
}
