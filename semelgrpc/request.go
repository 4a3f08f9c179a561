package semelgrpc

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Request is the input of an operation behind this package. Its fingerprint covers all fields of
// the message by their numbers, so that another field order, another version of the protobuf
// library and a renamed field make no difference. The field that carries the key is left out.
// Unknown fields are part of it as they were sent: do not add a field to a message and retry
// requests that already have it with servers that do not know it.
type Request[M proto.Message] struct {
	Message M

	keyField protoreflect.Name
}

// MarshalJSON returns the message in the JSON form of protobuf.
func (r Request[M]) MarshalJSON() ([]byte, error) { return protojson.Marshal(r.Message) }

// UnmarshalJSON reads the form of MarshalJSON.
func (r *Request[M]) UnmarshalJSON(text []byte) error {
	var zero M
	m, ok := zero.ProtoReflect().New().Interface().(M)
	if !ok {
		return fmt.Errorf("semelgrpc: %T cannot be made from JSON", zero)
	}
	r.Message = m
	return protojson.Unmarshal(text, m)
}

var _ json.Marshaler = Request[proto.Message]{}

// AppendFingerprint implements semel.Fingerprinter.
func (r Request[M]) AppendFingerprint(b []byte) ([]byte, error) {
	return appendMessage(b, r.Message.ProtoReflect(), r.keyField), nil
}

// appendMessage appends the populated fields of a message in the order of their numbers. Each value
// has a length or a fixed size, so that two different messages have different bytes.
func appendMessage(b []byte, m protoreflect.Message, except protoreflect.Name) []byte {
	var fields []protoreflect.FieldDescriptor
	m.Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if f.Name() != except || except == "" {
			fields = append(fields, f)
		}
		return true
	})
	slices.SortFunc(fields, func(a, b protoreflect.FieldDescriptor) int { return cmp.Compare(a.Number(), b.Number()) })
	b = binary.AppendUvarint(b, uint64(len(fields)))
	for _, f := range fields {
		b = binary.AppendUvarint(b, uint64(f.Number()))
		b = appendField(b, f, m.Get(f))
	}
	return appendBytes(b, m.GetUnknown())
}

func appendField(b []byte, f protoreflect.FieldDescriptor, v protoreflect.Value) []byte {
	switch {
	case f.IsMap():
		var keys []protoreflect.MapKey
		v.Map().Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
			keys = append(keys, k)
			return true
		})
		slices.SortFunc(keys, func(a, b protoreflect.MapKey) int { return cmp.Compare(a.String(), b.String()) })
		b = binary.AppendUvarint(b, uint64(len(keys)))
		for _, k := range keys {
			b = appendBytes(b, []byte(k.String()))
			b = appendScalar(b, f.MapValue(), v.Map().Get(k))
		}
		return b
	case f.IsList():
		b = binary.AppendUvarint(b, uint64(v.List().Len()))
		for i := range v.List().Len() {
			b = appendScalar(b, f, v.List().Get(i))
		}
		return b
	default:
		return appendScalar(b, f, v)
	}
}

func appendScalar(b []byte, f protoreflect.FieldDescriptor, v protoreflect.Value) []byte {
	switch f.Kind() {
	case protoreflect.BoolKind:
		if v.Bool() {
			return append(b, 1)
		}
		return append(b, 0)
	case protoreflect.EnumKind:
		return binary.BigEndian.AppendUint64(b, uint64(v.Enum())) //nolint:gosec // the bits are what is compared
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Int64Kind, protoreflect.Sint64Kind,
		protoreflect.Sfixed32Kind, protoreflect.Sfixed64Kind:
		return binary.BigEndian.AppendUint64(b, uint64(v.Int())) //nolint:gosec // as above
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.Fixed32Kind, protoreflect.Fixed64Kind:
		return binary.BigEndian.AppendUint64(b, v.Uint())
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return binary.BigEndian.AppendUint64(b, math.Float64bits(v.Float()))
	case protoreflect.StringKind:
		return appendBytes(b, []byte(v.String()))
	case protoreflect.BytesKind:
		return appendBytes(b, v.Bytes())
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return appendBytes(b, appendMessage(nil, v.Message(), ""))
	}
	return b
}

func appendBytes(b, text []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}
