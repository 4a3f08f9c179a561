package storetest

import (
	"strings"

	"github.com/semelgo/semel/store"
)

// keyChecks test the identity of a record: operation, scope and key, byte for byte.
func keyChecks() []storeCheck {
	return []storeCheck{
		{"Empty", func(r *harness) { r.mustBeDistinct("", " ") }},
		{"NUL", func(r *harness) { r.mustBeDistinct("\x00", "a\x00b", "a\x00c", "a\x00", "a\x00\x00") }},
		{"InvalidUTF8", func(r *harness) {
			r.mustBeDistinct("\xff\xfe\x80", "\xc3\x28", "\xc3\x29", "\xed\xa0\x80", "\xf8\x88\x80\x80\x80", "ключ")
		}},
		{"SimilarKeys", func(r *harness) {
			r.mustBeDistinct("abc", "Abc", "ABC", "\u00c4bc", "A\u0308bc", "\uff21bc", "straße", "strasse", "ı", "i", "I")
		}},
		{"Space", func(r *harness) {
			r.mustBeDistinct("key", "key ", " key", "key\t", "key\n", "key\r\n", "k ey", "key\u00a0", "key\u200b")
		}},
		{"Quotes", func(r *harness) {
			r.mustBeDistinct("'; drop table records; --", `"quoted\"`, `\`, `\\`, "%", "%00", "_", "$1", "?", ":a", "{a}", "../..", "*", ">")
		}},
		{"Separators", keySeparators},
		{"Longest", keyLongest},
		{"TooLong", keyTooLong},
	}
}

// mustBeDistinct creates records that differ in one of these texts only, and
// requires that each is a separate record that reads as it was written.
func (r *harness) mustBeDistinct(texts ...string) {
	r.Helper()
	var changes []store.Change
	for _, text := range texts {
		for _, rec := range []store.Record{
			identity("operation", "scope", text),
			identity("operation", text, "key"),
			identity("an operation "+text, "scope", "key"),
		} {
			rec.Fingerprint, rec.Due = []byte(text), farAhead
			changes = append(changes, create(rec, store.InProgress))
		}
	}
	r.mustStayDistinct(changes)
}

// mustStayDistinct creates the records, and then requires that all of them exist
// and that the lists of their operations contain them.
func (r *harness) mustStayDistinct(changes []store.Change) {
	r.Helper()
	of := make(map[string][]store.Record)
	for _, c := range changes {
		r.mustApply(c)
		of[c.To.Operation] = append(of[c.To.Operation], c.To)
	}
	for _, c := range changes {
		r.mustHoldRecord(c.To)
	}
	for operation, records := range of {
		r.mustFind(store.Query{Operation: operation}, records...)
	}
}

// The boundaries between operation, scope and key are part of the identity.
func keySeparators(r *harness) {
	var changes []store.Change
	for _, between := range []string{":", "/", "|", "\x00", "\x1f", ",", "-", "."} {
		for _, name := range [][3]string{
			{"op", "a", "b" + between + "c"},
			{"op", "a" + between + "b", "c"},
			{"op" + between + "a", "b", "c"},
		} {
			changes = append(changes, create(identity(name[0], name[1], name[2]), store.InProgress))
		}
	}
	changes = append(changes, create(identity("op", "", "abc"), store.InProgress), create(identity("op", "abc", ""), store.InProgress),
		create(identity("op", "ab", "c"), store.InProgress), create(identity("op", "a", "bc"), store.InProgress))
	r.mustStayDistinct(changes)
}

func keyLongest(r *harness) {
	rec := identity(strings.Repeat("o", store.MaxOperation), strings.Repeat("s", store.MaxScope), strings.Repeat("k", store.MaxKey))
	wide := identity(strings.Repeat("\xff", store.MaxOperation), strings.Repeat("\x00", store.MaxScope), strings.Repeat("'", store.MaxKey))
	r.mustStayDistinct([]store.Change{
		create(rec, store.InProgress),
		create(identity(rec.Operation, rec.Scope, rec.Key[1:]+"l"), store.InProgress),
		create(identity(rec.Operation, rec.Scope[1:]+"t", rec.Key), store.InProgress),
		create(identity(rec.Operation[1:]+"p", rec.Scope, rec.Key), store.InProgress),
		create(wide, store.InProgress),
	})
}

// A name that is too long is rejected, not cut. The error says which name.
func keyTooLong(r *harness) {
	for field, rec := range map[string]store.Record{
		"operation": identity(strings.Repeat("o", store.MaxOperation+1), "scope", "key"),
		"scope":     identity("operation", strings.Repeat("s", store.MaxScope+1), "key"),
		"key":       identity("operation", "scope", strings.Repeat("k", store.MaxKey+1)),
	} {
		r.mustRejectKey(field, create(rec, store.InProgress))
	}
	r.mustFind(store.Query{})
}

// mustRejectKey makes c and requires an Err that names the field.
func (r *harness) mustRejectKey(field string, c store.Change) {
	r.Helper()
	answer := r.swap(c)[0]
	switch {
	case answer.Err == nil:
		r.Errorf("%s with a bad %s = %s, want an Err", show(c), field, showAnswer(answer))
	case !strings.Contains(strings.ToLower(answer.Err.Error()), field):
		r.Errorf("%s with a bad %s: Err = %q, want it to name the field", show(c), field, answer.Err)
	}
}
