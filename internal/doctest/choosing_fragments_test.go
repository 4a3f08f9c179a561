package doctest_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
)

// The types and systems that the fragments of docs/choosing.md use.
type (
	ImportFile struct{ Name string }
	Report     struct{ Text string }
	Valve      struct{ Name string }
	Document   struct{ Text string }
	Page       struct{ URL string }
	receipts   map[string]Receipt
)

func (r receipts) Charge(_ context.Context, key string, p Payment) (Receipt, error) {
	if _, ok := r[key]; !ok {
		r[key] = Receipt{Number: p.Amount}
		return Receipt{}, errNoAnswer // the response to the first request is lost
	}
	return r[key], nil
}

func (r receipts) FindByReference(_ context.Context, key string) (Receipt, bool, error) {
	v, ok := r[key]
	return v, ok, nil
}

type plantControl struct{ fences map[string]uint32 }

func (p plantControl) RaiseFence(_ context.Context, key string, attempt uint32) error {
	p.fences[key] = attempt
	return nil
}

func (plantControl) Find(context.Context, string) (string, bool, error) { return "", false, nil }

type faxLine struct{ busy bool }

var errLineBusy = errors.New("line busy")

func (f *faxLine) Send(context.Context, Document) (string, error) {
	if f.busy {
		return "", errLineBusy
	}
	return "1", nil
}

var (
	bank  = receipts{}
	plant = plantControl{map[string]uint32{}}
)

// The fragments of docs/choosing.md.

var importOrders = semel.Define("import_orders", semel.OperationOptions[ImportFile]{
	Policy: semel.Atomic(),
	Lease:  time.Minute,
})

var chargeCard = semel.Define("charge_card", semel.OperationOptions[Payment]{Policy: semel.Keyed()})

var transfer = semel.Define("transfer", semel.OperationOptions[Payment]{
	Policy: semel.Heal(func(ctx context.Context, _ semel.Scope, key string) (any, bool, error) {
		return bank.FindByReference(ctx, key)
	}),
})

var openValve = semel.Define("open_valve", semel.OperationOptions[Valve]{
	Policy: semel.Fenced(
		func(ctx context.Context, _ semel.Scope, key string, attempt uint32) error {
			return plant.RaiseFence(ctx, key, attempt)
		},
		func(ctx context.Context, _ semel.Scope, key string) (any, bool, error) {
			return plant.Find(ctx, key)
		},
	),
})

var warmCache = semel.Define("warm_cache", semel.OperationOptions[Page]{Policy: semel.AtLeastOnce()})

var (
	buildReport = semel.Define("build_report", semel.OperationOptions[Page]{Policy: semel.Atomic()})
	sendFax     = semel.Define("send_fax", semel.OperationOptions[Document]{})
)

func reporting(ctx context.Context, engine *semel.Engine[*sql.Tx], scope semel.Scope, key string, req Page,
	render func(context.Context, Page) (Report, error), saveReport func(context.Context, *sql.Tx, Report) error,
) (Report, bool, error) {
	report, replayed, err := semel.Do(ctx, engine, buildReport.Call(scope, key, req), func(ctx context.Context) (Report, error) {
		report, err := render(ctx, req) // slow; changes nothing
		if err != nil {
			return Report{}, err
		}
		return semel.InTx(ctx, engine, func(ctx context.Context, tx *sql.Tx) (Report, error) {
			return report, saveReport(ctx, tx, report)
		})
	})
	return report, replayed, err
}

func chargingCard(ctx context.Context, engine *semel.Engine[*sql.Tx], scope semel.Scope, key string, provider receipts, p Payment) (Receipt, bool, error) {
	receipt, replayed, err := semel.Do(ctx, engine, chargeCard.Call(scope, key, p), func(ctx context.Context) (Receipt, error) {
		childKey, err := semel.ChildKey(ctx, "charge") // the same in every attempt
		if err != nil {
			return Receipt{}, err
		}
		return provider.Charge(ctx, childKey, p)
	})
	return receipt, replayed, err
}

func faxing(ctx context.Context, engine *semel.Engine[*sql.Tx], scope semel.Scope, key string, fax *faxLine, doc Document) (string, bool, error) {
	number, replayed, err := semel.Do(ctx, engine, sendFax.Call(scope, key, doc), func(ctx context.Context) (string, error) {
		number, err := fax.Send(ctx, doc)
		if errors.Is(err, errLineBusy) {
			return "", semel.NotCommitted(err) // nothing was sent
		}
		return number, err
	})
	return number, replayed, err
}

func chargeEndpoint(engine *semel.Engine[*sql.Tx], charge func(Payment) func(context.Context) (Receipt, error),
	user func(*http.Request) (semel.Scope, error),
) (http.Handler, error) {
	handler, err := semelhttp.Handle(semelhttp.Endpoint[Payment, Receipt]{
		Operation: chargeCard,
		Decode:    func(r *http.Request) (p Payment, err error) { return p, json.NewDecoder(r.Body).Decode(&p) },
		Run: func(ctx context.Context, call semel.Call, p Payment) (Receipt, bool, error) {
			return semel.Do(ctx, engine, call, charge(p))
		},
	}, semelhttp.Options{ScopeFunc: user})
	return handler, err
}

// TestChoosingFragmentsRun retries each operation as docs/choosing.md says.
func TestChoosingFragmentsRun(t *testing.T) {
	_, engine := onSQLite(t, importOrders, transfer, openValve, warmCache)
	scope := semel.ScopeOf("ann")
	ctx := t.Context()

	t.Run("Keyed", func(t *testing.T) {
		provider := receipts{}
		if _, _, err := chargingCard(ctx, engine, scope, "k", provider, Payment{5}); !errors.Is(err, semel.ErrOutcomeUnknown) {
			t.Errorf("the lost response is %v, want ErrOutcomeUnknown", err)
		}
		for _, want := range []bool{false, true} {
			if r, replayed, err := chargingCard(ctx, engine, scope, "k", provider, Payment{5}); r.Number != 5 || replayed != want || err != nil {
				t.Errorf("retry = %v, %t, %v, want the receipt, %t", r, replayed, err, want)
			}
		}
		check.Equal(t, len(provider), 1, "charges")
	})
	t.Run("InTx", func(t *testing.T) {
		render := func(context.Context, Page) (Report, error) { return Report{"text"}, nil }
		save := func(context.Context, *sql.Tx, Report) error { return nil }
		for _, want := range []bool{false, true} {
			if r, replayed, err := reporting(ctx, engine, scope, "k", Page{}, render, save); r.Text != "text" || replayed != want || err != nil {
				t.Errorf("report = %v, %t, %v, want the text, %t", r, replayed, err, want)
			}
		}
	})
	t.Run("Hold", func(t *testing.T) {
		fax := &faxLine{busy: true}
		if _, _, err := faxing(ctx, engine, scope, "k", fax, Document{}); !errors.Is(err, errLineBusy) || errors.Is(err, semel.ErrOutcomeUnknown) {
			t.Errorf("a busy line is %v, want errLineBusy and no doubt", err)
		}
		fax.busy = false
		if number, _, err := faxing(ctx, engine, scope, "k", fax, Document{}); number != "1" || err != nil {
			t.Errorf("retry = %q, %v, want 1", number, err)
		}
	})
	t.Run("Heal", func(t *testing.T) {
		lost := func(context.Context) (Receipt, error) {
			bank["k"] = Receipt{Number: 7}
			return Receipt{}, errNoAnswer
		}
		call := transfer.Call(scope, "k", Payment{5})
		_, _, _ = semel.Do(ctx, engine, call, lost)
		if r, _, err := semel.Do(ctx, engine, call, lost); r.Number != 7 || err != nil {
			t.Errorf("retry = %v, %v, want the receipt that the bank has", r, err)
		}
	})
	t.Run("Handle", func(t *testing.T) {
		h := must(chargeEndpoint(engine, func(p Payment) func(context.Context) (Receipt, error) {
			return func(context.Context) (Receipt, error) { return Receipt{p.Amount}, nil }
		}, func(*http.Request) (semel.Scope, error) { return scope, nil }))
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/charges", strings.NewReader(`{"Amount":9}`))
		r.Header.Set(semelhttp.HeaderKey, "http")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "9") {
			t.Errorf("response %d %s, want 200 with the receipt", w.Code, w.Body)
		}
	})
}
