// Package conform tests a server against
// draft-ietf-httpapi-idempotency-key-header-07 and, where the draft leaves a
// choice, against the server's own profile. It acts as a client: it opens its
// own connections and controls every byte that it sends.
//
// A server can be tested in one of two ways. It can implement the fixture
// contract (docs/conformance/README.md); then every case can run. Or the
// profile's member "suite" names one of the server's own endpoints and a
// counter of its effects. Cases that need more are then not shown, with the
// reason.
package conform
