// Package onetime issues tokens that can be used once: for a plain HTML form, so that a
// double click, a reload and the back button place one order; or for a link in a mail.
//
// A [Purpose] is what a token is for, and a subject is the user or the session that may
// use it:
//
//	var placeOrder = onetime.Define[Draft]("place_order", onetime.Options{})
//
//	token, err := placeOrder.Issue(ctx, engine, semel.ScopeOf(userID), time.Hour, draft)
//
//	order, replayed, err := onetime.ConsumeTx(ctx, placeOrder, engine, semel.ScopeOf(userID), token,
//		func(ctx context.Context, tx pgx.Tx, d Draft) (Order, error) { return insertOrder(ctx, tx, d) })
//
// The first submit of the token runs the function. Every other submit, at the same time
// or later, receives its result. Package semelhttp has middleware that does this for the
// requests of a form: semelhttp.Form and semelhttp.FormTx.
//
// # Which call for which effect
//
//   - The effect is in the records' own database: [ConsumeTx]. Effect, use of the token and
//     result commit together. After a crash or an error nothing has happened, and the token
//     can still be used.
//   - The effect is anywhere else: [Consume], over a store with or without transactions. The
//     use of the token commits first. Options.Policy says what happens to the token if the
//     process dies meanwhile; with the default, semel.Hold, it cannot be used again, and
//     every further submit gets semel.ErrInDoubt until an operator resolves the record.
//
// # Which tokens are accepted
//
// Only [Purpose.Issue] creates a record; a submit never does. The error of a token that
// was not issued for this purpose and this subject is [ErrUnknown], also if the token
// belongs to another user. A token whose time was over before it was used is
// [ErrExpired]. The store's clock decides, when the operation starts: an operation that has
// started in time may end later, and its result is returned to every submit until the
// retention ends. After that the token is ErrUnknown. So a token never runs its operation
// twice, however late it is submitted again.
//
// The function's input is not part of the token: a submit of the same token with other
// contents receives the first result. semelhttp.Form compares the contents, and refuses
// such a submit.
//
// # Secrecy
//
// A token has 256 bits from crypto/rand. The store has only its SHA-256 digest, which is
// also what is compared, so neither the database nor the time of a comparison helps to find
// a token. A payload is stored as it is, in JSON, until the token is used.
package onetime
