package server

import (
	"context"
	"fmt"
	"net/http"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/semelhttp"
)

// The price of a boost, in cents.
const (
	boostPrice    = 500
	boostCurrency = "EUR"
)

// boostGroup is the endpoint that charges a boost once per key.
func (s *app) boostGroup() (http.Handler, error) {
	return semelhttp.Handle(semelhttp.Endpoint[boostRequest, chatdb.Boost]{
		Operation: s.operations.boostGroup,
		Decode:    s.decodeBoost,
		Run:       s.runBoost,
		Render:    func(w http.ResponseWriter, _ *http.Request, b chatdb.Boost) { writeJSON(w, http.StatusCreated, b) },
		Refuse:    refuseBoost,
	}, s.keyed())
}

// decodeBoost also rejects callers that are not members, and every call to a
// server without a payment service.
func (s *app) decodeBoost(r *http.Request) (boostRequest, error) {
	if s.payments == nil {
		return boostRequest{}, problem(codeNoPayments, "", "It was started without -payments.")
	}
	if err := s.checkMember(r); err != nil {
		return boostRequest{}, fmt.Errorf("%w: %w", problemOf(err), err)
	}
	if p := readObject(r); p != nil {
		return boostRequest{}, p
	}
	return boostRequest{GroupID: r.PathValue("id")}, nil
}

func (s *app) runBoost(ctx context.Context, c semel.Call, in boostRequest) (chatdb.Boost, bool, error) {
	b := chatdb.Boost{GroupID: in.GroupID, UserID: userIn(ctx).ID, Amount: boostPrice, Currency: boostCurrency}
	return semel.Do(ctx, s.engine, c, func(ctx context.Context) (chatdb.Boost, error) {
		reference, err := semel.ChildKey(ctx, "reference")
		if err != nil {
			return chatdb.Boost{}, err
		}
		b.ChargeID, err = s.payments.charge(ctx, newCharge{
			Amount: b.Amount, Currency: b.Currency, Reference: b.GroupID + " " + reference,
		})
		if err != nil {
			return chatdb.Boost{}, err
		}
		err = s.transact(ctx, func(ctx context.Context, tx chatdb.Tx) (err error) {
			b, err = chatdb.BoostGroupTx(ctx, tx, b)
			return err
		})
		return b, err
	})
}

// refuseBoost is the response to a boost that the payment service declined.
func refuseBoost(f *semel.Failure) *semelhttp.Problem {
	return problem(f.Code, "", "%s Nothing was charged, and this key stays refused; use a new one.", f.Message)
}

func (s *app) listBoosts(r *http.Request) (any, error) {
	if err := s.checkMember(r); err != nil {
		return nil, err
	}
	boosts, err := chatdb.BoostsOf(r.Context(), s.domain, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return map[string]any{"boosts": boosts}, nil
}
