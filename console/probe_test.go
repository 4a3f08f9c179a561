package console_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/console"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// resolve resolves a record as succeeded.
func resolve(t *testing.T, e semel.Runner, id store.ID) {
	t.Helper()
	check.Must(admin.Resolve(t.Context(), e, admin.Resolution{ID: id, To: store.Succeeded, Actor: "bob", Reason: "seen"}))(t)
}

// The probe of a record in doubt is called by an actor with a right, is audited, and writes
// nothing.
func TestProbe(t *testing.T) {
	t.Parallel()
	g := memoryRig(t)
	id := g.run(t, g.wire, "order-1", true)
	before := check.Must(admin.Read(t.Context(), g.engine, id))(t)
	form := url.Values{"id": {id.String()}}
	for _, path := range []string{"record?id=" + id.String(), "doubt"} {
		g.get(t, path).has(t, http.StatusOK, "Call the probe", "Heal")
	}
	g.post(t, "probe", form).has(t, http.StatusOK, "The probe has found nothing.", "That proves nothing")
	g.setProbe(func(_ context.Context, key string) (any, bool, error) { return "paid " + key, true, nil })
	g.post(t, "probe", form).has(t, http.StatusOK, "The probe has found the effect.", "Nothing was written", "paid order-1")
	g.setProbe(func(context.Context, string) (any, bool, error) { return nil, false, errBank })
	g.post(t, "probe", form).has(t, http.StatusOK, "The probe has failed.", "bank &lt;script&gt;")
	if len(g.events) != 3 || g.events[0].Actor != "ann" || g.events[0].Action != console.Probe || g.events[0].Records[0] != id {
		t.Errorf("audited: %+v", g.events)
	}

	// Without the right to see data of callers, an actor learns whether there is an effect.
	g.become(console.Actor{Name: "bob", Write: true})
	g.post(t, "probe", form).has(t, http.StatusOK, "The probe has failed.").hasNot(t, "bank")
	g.setProbe(func(context.Context, string) (any, bool, error) { return "paid", true, nil })
	g.post(t, "probe", form).has(t, http.StatusOK, "has found the effect", "hidden").hasNot(t, "paid")
	check.Equal(t, len(g.events), 5, "audited events")
	now := check.Must(admin.Read(t.Context(), g.engine, id))(t)
	check.Equal(t, now.Token, before.Token, "the record's token")

	// No right, or no audit: the probe is not called.
	g.setProbe(func(context.Context, string) (any, bool, error) {
		t.Error("the probe was called")
		return nil, false, nil
	})
	g.become(console.Actor{Name: "eve"})
	g.get(t, "record?id="+id.String()).has(t, http.StatusOK, "has 5 seconds").hasNot(t, "Call the probe")
	g.get(t, "doubt").has(t, http.StatusOK, "order-1").hasNot(t, "Call the probe")
	g.post(t, "probe", form).has(t, http.StatusForbidden)
	g.send(t, http.MethodPost, "probe", form, "Origin", "https://evil.example").has(t, http.StatusForbidden)
	g.become(console.Actor{Name: "ann", Reveal: true})
	g.refuse = errBank
	g.post(t, "probe", form).has(t, http.StatusServiceUnavailable)
}

// A page says why there is no probe to call.
func TestNoProbe(t *testing.T) {
	t.Parallel()
	g := memoryRig(t)
	held := g.run(t, g.charge, "order-1", true)
	done := g.run(t, g.wire, "order-2", false)
	other := semel.Define("other", semel.OperationOptions[input]{Policy: semel.Heal(func(context.Context, semel.Scope, string) (any, bool, error) { return nil, false, nil })})
	unknown := g.run(t, other, "order-3", true)
	for id, text := range map[store.ID]string{
		held: "The policy of the operation has no probe", unknown: "This process does not have the operation, so it cannot call its probe",
	} {
		g.get(t, "record?id="+id.String()).has(t, http.StatusOK, text).hasNot(t, "Call the probe")
		g.post(t, "probe", url.Values{"id": {id.String()}}).has(t, http.StatusOK, "There is no probe to call.", text)
	}
	g.get(t, "record?id="+done.String()).has(t, http.StatusOK).hasNot(t, "Evidence")
	g.post(t, "probe", url.Values{"id": {done.String()}}).has(t, http.StatusOK).hasNot(t, "found")
	g.get(t, "doubt").has(t, http.StatusOK, "the policy has none", "not known to this process").hasNot(t, "Call the probe")
}

// A probe has 5 seconds.
func TestSlowProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := false
		op := semel.Define("op", semel.OperationOptions[string]{Policy: semel.Heal(func(ctx context.Context, _ semel.Scope, _ string) (any, bool, error) {
			if !slow {
				return nil, false, nil
			}
			<-ctx.Done()
			return nil, false, errors.New("the query was cancelled")
		})})
		engine := check.Must(semel.NewRunner(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure, Operations: []semel.Declared{op}}))(t)
		call := op.Call(semel.Shared(), "key", "")
		_, _, err := semel.Do(t.Context(), engine, call, func(context.Context) (string, error) { return "", errBank })
		check.ErrorIs(t, err, semel.ErrOutcomeUnknown, "the call")
		slow = true
		begun := time.Now()
		a := newBubble(t, console.Engine{Runner: engine}).post(t, "/probe", url.Values{"id": {call.ID().String()}})
		a.has(t, http.StatusOK, "The probe has not answered within 5s.")
		check.Equal(t, time.Since(begun), 5*time.Second, "the time of the answer")
	})
}

// An operator finds the key that the other system received.
func TestChildKey(t *testing.T) {
	t.Parallel()
	g := memoryRig(t)
	id := g.run(t, g.charge, "order-1", true)
	g.get(t, "record?id="+id.String()).has(t, http.StatusOK, "Show the key").hasNot(t, "received the key")
	record := check.Must(admin.Read(t.Context(), g.engine, id))(t)
	g.get(t, "record?id="+id.String()+"&child=bank").has(t, http.StatusOK, "received the key", admin.ChildKey(record, "bank"))
	g.get(t, "record?id="+id.String()+"&child="+url.QueryEscape(`"><script>`)).has(t, http.StatusOK, "received the key").hasNot(t, `"><script>`)
}
