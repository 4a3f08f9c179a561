//go:build !race

package archtest_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/repository"
)

// decisions are the values by which the protocol decides. Code outside of
// internal/protocol may compare a value with one of them only in a function that is
// listed in comparisons, with the reason.
func decisions() map[string][]string {
	return map[string][]string{
		"store": {"Absent", "Pending", "InProgress", "InDoubt", "Succeeded", "Failed", "Unknown", "Committed", "NotCommitted"},
		"protocol": {
			"Unset", "Atomic", "Hold", "Heal", "Fenced", "Keyed", "AtLeastOnce",
			"StepFail", "StepRelease", "StepSucceed", "StepRequeue",
		},
	}
}

// comparisons lists the functions of the engine, of the patterns and of the edges that
// compare a state or a verdict, and why that is no decision of the protocol. Each
// represents a decision that the protocol has made.
func comparisons() map[string]string {
	const (
		shows    = "shows a state to users"
		encodes  = "chooses how an outcome is stored"
		decodes  = "reads a stored outcome"
		observes = "chooses an event for the Observer"
		edge     = "translates an answer for a broker or an HTTP client"
	)
	return map[string]string{
		"internal/engine.resolveDoubt":        "an operator's Pending withdraws the request to cancel",
		"internal/engine.resolvedOutcome":     encodes,
		"internal/engine.cancelledOutcome":    encodes,
		"internal/engine.cancelWaiting":       observes,
		"internal/engine.checkCancelRequests": "a Pending request is one that was not withdrawn",
		"internal/engine.Core.replay":         decodes,
		"internal/engine.Outcome.Failure":     decodes,
		"internal/codec.ProgressOf":           decodes,
		"internal/codec.IsDeadLetter":         decodes,
		"internal/engine.Attempt.endError":    "the error for each state of a record that an attempt has left",
		"internal/engine.endKind":             observes,
		"internal/engine.tracedEnd":           observes,
		"semelotel.monitor.collect":           shows,
		"semelotel.monitor.read":              shows,
		"internal/engine.operation.proof":     "reads the verdict of the user's Classify",
		"internal/callerr.AttemptError.Is":    "reports the error's own verdict",
		"internal/callerr.AttemptError.led":   shows,
		"internal/callerr.IsTemporary":        "reports the error's own verdict",
		"internal/engine.useTransactions":     "counts writes, for the read hint",
		"internal/engine.inline.send":         "the store's answer without an error",
		"internal/engine.inflightCalls.wait":  "a record shows that an attempt is running elsewhere",
		"task.Count.add":                      shows,
		"guard.isInDoubt":                     "refuses to seal an attempt that is running",
		"outbox.membership.refresh":           "a record shows that another relay is running",
		"inbox.decideFailed":                  edge,
		"inbox.redeliveryDelay":               edge,
		"semelhttp.exchange.isOwnAnswer":      edge,
		"semelhttp.exchange.refuse":           edge,
		"semelhttp.run.outcome":               edge,
		"semelhttp.run.result":                edge,
		"semelhttp.settings.neverStored":      edge,
		"semelhttp.codeOf":                    edge,
		"semelhttp.ProblemOf":                 edge,
		"semelgrpc.StatusOf":                  edge,
	}
}

// TestOnlyTheProtocolDecides: no code outside of internal/protocol decides by state,
// policy or verdict what a record becomes or what an error means.
func TestOnlyTheProtocolDecides(t *testing.T) {
	allowed, used := comparisons(), map[string]bool{}
	for _, name := range repository.Files(t, "*.go") {
		dir := path.Dir(name)
		if dir == "." {
			dir = "semel"
		}
		_, at, known := unitOf(dir)
		if strings.HasSuffix(name, "_test.go") || !known || at <= rules || at > patterns && at != edges {
			continue
		}
		files := token.NewFileSet()
		file := check.Must(parser.ParseFile(files, name, repository.Read(t, name), 0))(t)
		for _, declared := range file.Decls {
			f, ok := declared.(*ast.FuncDecl)
			if !ok {
				continue
			}
			for _, found := range compared(f) {
				function := strings.TrimPrefix(path.Dir(name), ".") + "." + functionName(f)
				if used[function] = true; allowed[function] == "" {
					t.Errorf("%s: %s compares with %s: only internal/protocol decides by states, policies and verdicts", name, functionName(f), found)
				}
			}
		}
	}
	for function := range allowed {
		if !used[function] {
			t.Errorf("comparisons lists %s, which compares nothing any more", function)
		}
	}
}

// compared returns the decisions that a function compares a value with.
func compared(f *ast.FuncDecl) []string {
	var found []string
	note := func(e ast.Expr) {
		s, ok := e.(*ast.SelectorExpr)
		if !ok {
			return
		}
		pkg, ok := s.X.(*ast.Ident)
		if ok && slices.Contains(decisions()[pkg.Name], s.Sel.Name) {
			found = append(found, pkg.Name+"."+s.Sel.Name)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				note(n.X)
				note(n.Y)
			}
		case *ast.CaseClause:
			for _, e := range n.List {
				note(e)
			}
		}
		return true
	})
	return found
}

func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	if p, ok := of.(*ast.StarExpr); ok {
		of = p.X
	}
	if g, ok := of.(*ast.IndexExpr); ok {
		of = g.X
	}
	return fmt.Sprintf("%s.%s", of, f.Name.Name)
}
