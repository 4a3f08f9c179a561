// Package semelhttp makes HTTP requests that carry an Idempotency-Key happen once, and
// answers every retry with the response to the first request.
//
// There are three ways to use it. They differ in who opens the transaction and in what
// the outcome is:
//   - [Atomic]: the middleware opens a transaction, the handler gets it by semel.TxOf,
//     and the captured response commits with the handler's writes. The first choice.
//   - [Middleware]: the key is claimed first, the effect may be anywhere, and the
//     captured response is the outcome. Within it, semel.InTx commits effect and
//     response together.
//   - [Handle]: the operation returns a value, and the value is the outcome. The edge
//     renders it, also for a record that was healed.
//
// [Form] and [FormTx] do the same for plain HTML forms, whose clients are browsers: the key
// is a one-time token in a hidden field, and errors are pages.
//
// # The key
//
// The key is in the Idempotency-Key header, on exactly one line, quoted ("abc") or raw
// (abc): both are the same key, unless Options.Profile says otherwise. With
// Options.KeyFunc it is in a field of the request. It belongs to the scope that
// Options.ScopeFunc returns, and stands for one request: [JSONFields] says which part of
// a body counts if not all of its bytes do.
//
// # Clients
//
// Package [github.com/semelgo/semel/semelhttp/client] is the client's side: its
// Transport sends a call until it is answered, under one key and with the same bytes.
//
// # Order of the checks
//
// Key, scope and size of the body are checked before the store is used; an error in them
// is answered with a [Problem] and never stored. Routing, authentication and validation
// belong outside of the middleware, or into Endpoint.Decode, for the same reason.
//
// # Replays
//
// A replay has the first response's status, body, and those of its headers that describe
// the created resource; never Set-Cookie, Date or a header of the connection. It carries
// Idempotent-Replayed: true, and no other response does. Options.Reauthorize is called
// before a replay is sent.
//
// A response that was streamed, that is larger than Options.MaxResponse, or that says
// Cache-Control: no-store is sent to the first caller and not stored. Its operation has
// happened and does not run again: retries get 409 result_unavailable, which says that it
// succeeded; or, after a refusal, the refusal's status.
//
// docs/http.md has the tables: which responses are final, and which errors the package
// itself sends. docs/http-draft.md has each line of the draft with its tests.
package semelhttp
