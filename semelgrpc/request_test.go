package semelgrpc_test

import (
	"encoding/hex"
	"encoding/json"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelgrpc"
)

func fingerprint(t *testing.T, m proto.Message) string {
	t.Helper()
	b := check.Must(semelgrpc.Request[proto.Message]{Message: m}.AppendFingerprint(nil))(t)
	return hex.EncodeToString(b)
}

// TestFingerprints: equal messages have equal fingerprints, and each difference shows.
func TestFingerprints(t *testing.T) {
	t.Parallel()
	full := func(change func(m message, field func(string) protoreflect.FieldDescriptor)) message {
		m := payment(5)
		field := func(name string) protoreflect.FieldDescriptor {
			return m.Descriptor().Fields().ByName(protoreflect.Name(name))
		}
		notes := m.Mutable(field("notes")).List()
		notes.Append(protoreflect.ValueOfString("a"))
		notes.Append(protoreflect.ValueOfString("b"))
		tags := m.Mutable(field("tags")).Map()
		for _, k := range []string{"x", "y", "z"} {
			tags.Set(protoreflect.ValueOfString(k).MapKey(), protoreflect.ValueOfString("1"))
		}
		if change != nil {
			change(m, field)
		}
		return m
	}
	want := fingerprint(t, full(nil))
	if want != "03"+"02"+"0000000000000005"+"03"+"02"+"0161"+"0162"+"04"+"03"+"0178"+"0131"+"0179"+"0131"+"017a"+"0131"+"00" {
		t.Errorf("the fingerprint has changed to %s: stored records would not match any more", want)
	}
	for range 20 { // maps have a random order
		if got := fingerprint(t, full(nil)); got != want {
			t.Fatalf("%s, then %s", want, got)
		}
	}
	for name, change := range map[string]func(m message, field func(string) protoreflect.FieldDescriptor){
		"number": func(m message, f func(string) protoreflect.FieldDescriptor) {
			m.Set(f("cents"), protoreflect.ValueOfInt64(-5))
		},
		"no number": func(m message, f func(string) protoreflect.FieldDescriptor) { m.Clear(f("cents")) },
		"list":      func(m message, f func(string) protoreflect.FieldDescriptor) { m.Mutable(f("notes")).List().Truncate(1) },
		"joined texts": func(m message, f func(string) protoreflect.FieldDescriptor) {
			l := m.Mutable(f("notes")).List()
			l.Truncate(1)
			l.Set(0, protoreflect.ValueOfString("ab"))
		},
		"map value": func(m message, f func(string) protoreflect.FieldDescriptor) {
			m.Mutable(f("tags")).Map().Set(protoreflect.ValueOfString("y").MapKey(), protoreflect.ValueOfString("2"))
		},
		"map key": func(m message, f func(string) protoreflect.FieldDescriptor) {
			m.Mutable(f("tags")).Map().Clear(protoreflect.ValueOfString("y").MapKey())
		},
		"unknown field": func(m message, _ func(string) protoreflect.FieldDescriptor) { m.SetUnknown([]byte{0x48, 0x01}) },
	} {
		if got := fingerprint(t, full(change)); got == want {
			t.Errorf("%s: the fingerprint is the same", name)
		}
	}
}

// TestNestedFingerprints: nested messages of generated code, with all kinds of values.
func TestNestedFingerprints(t *testing.T) {
	t.Parallel()
	newStruct := func(v map[string]any) proto.Message {
		s := check.Must(structpb.NewStruct(v))(t)
		return s
	}
	values := []proto.Message{
		newStruct(nil), newStruct(map[string]any{"a": 1.5}), newStruct(map[string]any{"a": true}), newStruct(map[string]any{"a": false}), newStruct(map[string]any{"a": nil}),
		newStruct(map[string]any{"a": []any{"b", 1}}), newStruct(map[string]any{"a": map[string]any{"b": "c"}}), newStruct(map[string]any{"a": "1.5"}),
	}
	seen := map[string]int{}
	for i, v := range values {
		printed := fingerprint(t, v)
		if j, ok := seen[printed]; ok {
			t.Errorf("values %d and %d have the same fingerprint", i, j)
		}
		seen[printed] = i
	}
}

func TestRequestsAsJSON(t *testing.T) {
	t.Parallel()
	in := semelgrpc.Request[*structpb.Struct]{Message: &structpb.Struct{Fields: map[string]*structpb.Value{"a": structpb.NewNumberValue(1)}}}
	text := check.Must(json.Marshal(in))(t)
	var out semelgrpc.Request[*structpb.Struct]
	if err := json.Unmarshal(text, &out); err != nil || !proto.Equal(in.Message, out.Message) {
		t.Errorf("%s is read as %v, %v", text, out.Message, err)
	}
}
