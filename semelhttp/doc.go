// Package semelhttp makes HTTP requests that carry an Idempotency-Key happen
// once, and answers every repeat with what the first one was answered.
//
// There are three ways in. They differ in who opens the transaction and in what
// the outcome is:
//
//   - [Atomic]: the middleware opens a transaction, the handler takes it with
//     semel.TxOf, and the captured response commits with the handler's writes.
//     The first choice.
//   - [Middleware]: the key is claimed first, the effect is anywhere, and the
//     captured response is the outcome. Within it, semel.InTx commits effect
//     and response together.
//   - [Handle]: the operation returns a value, and the value is the outcome. The
//     edge renders it, also for a record that was healed.
//
// # The key
//
// The Idempotency-Key header, on exactly one line, quoted ("abc") or raw (abc):
// both are the same key, unless Options.Profile says otherwise. Or a field of
// the request, with Options.KeyFunc. It belongs to whoever Options.ScopeFunc says
// is asking, and stands for one request: [JSONFields] says what of a body counts
// when not all of its bytes do.
//
// # Clients
//
// [Transport] is the other side: it sends a call until it is answered, under one
// key and with the same bytes. Within an operation the key is derived from the
// operation's, so that every attempt makes the same call; see [WithChildKey].
//
// # The order of things
//
// Key, scope and size of the body are looked at before anything is asked of the
// store; what is wrong with them is answered with a [Problem] and never stored.
// Routing, authentication and validation belong outside of the middleware, or
// into Endpoint.Decode, for the same reason.
//
// # Replays
//
// A replay has the first response's status, body, and those of its headers that
// describe what was made; never Set-Cookie, Date or what belongs to a
// connection. It carries Idempotent-Replayed: true, and nothing else does.
// Options.Reauthorize is asked before one is given.
//
// A response that was streamed, that is larger than Options.MaxResponse, or that
// says Cache-Control: no-store goes to the first caller and is not kept. Its
// operation has happened and is not run again: repeats get 409
// result_unavailable, which says that it succeeded; or, after a refusal, the
// refusal's status.
//
// docs/http.md has the tables: which responses are final, what the layer itself
// answers, and each line of the draft with the tests that show it.
package semelhttp
