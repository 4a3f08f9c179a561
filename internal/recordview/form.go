package recordview

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

const (
	// comparedResults is with how many results CheckForm compares.
	comparedResults = 20
	// comparisonTimeout limits the search for them: a store may have to read many
	// records of other operations.
	comparisonTimeout = 2 * time.Second
)

// CheckForm compares a result that an operator has written with results that the
// operation has stored, and returns a *semel.FieldError if its JSON type or one of its fields
// occurs in none of them. An operator may by mistake take the answer of another system
// for the result of the function, and callers could then not decode it. Nothing is
// reported if there is no result to compare with. The error contains neither
// values nor field names of other results, which may be private.
func CheckForm(ctx context.Context, list func(context.Context, store.Query) ([]store.Record, error), operation string, result json.RawMessage) error {
	ctx, cancel := context.WithTimeout(ctx, comparisonTimeout)
	defer cancel()
	others, err := list(ctx, store.Query{State: store.Succeeded, Operation: operation, Limit: comparedResults})
	if err != nil {
		return nil // the comparison is a help, and the resolution reports what is wrong with the store
	}
	types, fields, compared := map[string]bool{}, map[string]bool{}, 0
	for i := range others {
		v := OutcomeOf(&others[i], true)
		if v.Kind != KindJSON {
			continue
		}
		compared++
		types[typeOf(v.JSON)] = true
		for _, name := range fieldsOf(v.JSON) {
			fields[name] = true
		}
	}
	if compared == 0 {
		return nil
	}
	if own := typeOf(result); !types[own] {
		return otherForm("is %s; results of operation %s are %s", own, operation, strings.Join(slices.Sorted(maps.Keys(types)), " or "))
	}
	for _, name := range fieldsOf(result) {
		if !fields[name] {
			return otherForm("has the field %q, which no other result of operation %s has", name, operation)
		}
	}
	return nil
}

func otherForm(format string, args ...any) error {
	return &semel.FieldError{Field: "Result", Reason: fmt.Sprintf(format, args...)}
}

// typeOf returns the type of a JSON value, with its article.
func typeOf(text json.RawMessage) string {
	switch text = bytes.TrimSpace(text); text[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}

// fieldsOf returns the names of the fields of a JSON object, sorted.
func fieldsOf(text json.RawMessage) []string {
	var object map[string]json.RawMessage
	if json.Unmarshal(text, &object) != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(object))
}
