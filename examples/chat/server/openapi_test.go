package server_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/semelgo/semel/examples/chat/server"
)

// TestEveryEndpointIsDescribed compares the server's paths and methods with the
// description.
func TestEveryEndpointIsDescribed(t *testing.T) {
	t.Parallel()
	var told []string
	for path, item := range description(t).Paths.Map() {
		for method := range item.Operations() {
			told = append(told, method+" "+path)
		}
	}
	answered, err := server.Endpoints()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(told)
	slices.Sort(answered)
	if diff := cmp.Diff(answered, told); diff != "" {
		t.Errorf("endpoints (-answered +described):\n%s", diff)
	}
}

// promise is the description of an operation's key.
type promise struct {
	Header struct {
		Name     string
		Required bool
	}
	KeyTime     []string
	Scope       string
	Fingerprint []string
	Retention   string
	Replay      string
	Final       []string
	Again       []string
}

// promises reads the descriptions of keys, by operation.
func promises(t *testing.T) map[string]promise {
	t.Helper()
	all := make(map[string]promise)
	for _, item := range description(t).Paths.Map() {
		for _, op := range item.Operations() {
			if given, ok := op.Extensions["x-idempotency"]; ok {
				all[op.OperationID] = readPromise(t, op, given)
			}
		}
	}
	return all
}

func readPromise(t *testing.T, op *openapi3.Operation, given any) (p promise) {
	t.Helper()
	text, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatalf("x-idempotency of %s: %v", op.OperationID, err)
	}
	return p
}

// TestDescribedRetentionIsTheServers compares the retention in the description and
// in the declaration with the server's.
func TestDescribedRetentionIsTheServers(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	var declared struct {
		Header   string
		Required bool
		Key      struct{ Time string }
		Seconds  int64 `json:"retention_seconds"`
	}
	a := w.send(t, request{method: "GET", path: "/.well-known/idempotency"}).want(t, http.StatusOK, "")
	if err := json.Unmarshal([]byte(a.Body), &declared); err != nil {
		t.Fatal(err)
	}
	all := promises(t)
	if len(all) != 4 {
		t.Fatalf("%d operations with a key are described, want 4", len(all))
	}
	for name, p := range all {
		var days int64
		if err := json.Unmarshal([]byte(strings.Trim(p.Retention, "PD")), &days); err != nil {
			t.Fatalf("%s: retention %q is no number of days", name, p.Retention)
		}
		if told := time.Duration(days) * 24 * time.Hour; told != server.Retention || told != time.Duration(declared.Seconds)*time.Second {
			t.Errorf("%s: retention is %v localServer, %d s in the declaration, and %v in the operation",
				name, told, declared.Seconds, server.Retention)
		}
		if p.Header.Name != declared.Header || p.Header.Required != declared.Required || !slices.Contains(p.KeyTime, declared.Key.Time) {
			t.Errorf("%s: %+v localServer, %+v in the declaration", name, p, declared)
		}
	}
}

// TestDescribedReplaysAreWhatHappens repeats each request whose response the
// description calls final, and checks every other response that it documents.
func TestDescribedReplaysAreWhatHappens(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	group := "/v1/groups/" + w.group
	send := func(key, text string) request {
		return request{method: "POST", path: group + "/messages", as: w.ann, key: key, body: `{"text":"` + text + `"}`}
	}
	other := w.send(t, creation(w.ann, "other", "crew")).want(t, http.StatusCreated, "").value(t)["id"].(string)
	poor := w.send(t, creation(w.ann, "poor", "crew")).want(t, http.StatusCreated, "").value(t)["id"].(string)
	w.fakePayments.declines(poor)
	final := map[string]map[string]request{
		"boostGroup":  {"created": boost(w.ann, "d", w.group), "payment_declined": boost(w.ann, "e", poor)},
		"createGroup": {"created": creation(w.ann, "a", "crew", w.bob.ID), "unknown_member": creation(w.ann, "b", "crew", 99)},
		"sendMessage": {"created": send("c", "hello")},
		"signUp":      {"created": signUp("f", "eve"), "name_taken": signUp("g", "ann")},
	}
	for name, p := range promises(t) {
		if p.Replay != "identical" || len(p.Final) != len(final[name]) {
			t.Errorf("%s: replay %q of %v, want identical of %d answers", name, p.Replay, p.Final, len(final[name]))
		}
		for _, what := range p.Final {
			asked := final[name][what]
			first, again := w.send(t, asked), w.send(t, asked)
			if code := first.code(); first.Status != http.StatusCreated && code != what {
				t.Errorf("%s: %d %q, want %s", name, first.Status, code, what)
			}
			if first.Replayed || !again.Replayed || again.Status != first.Status || again.Body != first.Body ||
				again.Header.Get("Location") != first.Header.Get("Location") {
				t.Errorf("%s, %s: %+v, then %+v; want the same, and the second a replay", name, what, first, again)
			}
			asked.body = strings.Replace(asked.body, `":"`, `":"not `, 1)
			if asked.body == "{}" { // the whole request is in the URL
				asked.path = boost(w.ann, "", other).path
			}
			w.send(t, asked).want(t, http.StatusUnprocessableEntity, "key_reused")
			asked.key = keyOf(t, time.Now().Add(-server.Retention-time.Hour))
			w.send(t, asked).want(t, http.StatusGone, "key_expired")
			asked.key = keyOf(t, time.Now().Add(time.Hour))
			w.send(t, asked).want(t, http.StatusGone, "key_expired")
		}
	}
	fresh := creation(w.ann, keyOf(t, time.Now()), "crew")
	w.send(t, fresh).want(t, http.StatusCreated, "")
	w.send(t, request{method: "GET", path: group + "/messages?after=0&limit=10", as: w.ann}).want(t, http.StatusOK, "")
	a := w.send(t, request{method: "GET", path: "/openapi.yaml"}).want(t, http.StatusOK, "")
	if a.Body != string(server.Description) {
		t.Error("the description that is served is another one")
	}
}

// keyOf returns a UUID version 7 of the given time.
func keyOf(t *testing.T, at time.Time) string {
	t.Helper()
	id, err := uuid.NewV7()
	if err != nil {
		t.Fatal(err)
	}
	ms := at.UnixMilli()
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	return id.String()
}
