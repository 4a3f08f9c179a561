// Package conform holds a server to draft-ietf-httpapi-idempotency-key-header-07,
// and to what its own profile says where the draft is silent. It sees the server
// as a client does: over connections of its own, byte for byte, and through
// nothing else.
//
// A server is shown in one of two ways. It may implement the fixture contract
// (docs/conformance/README.md), and then every case can be run. Or an endpoint
// of its own is named in the profile's member "suite", with a counter of its
// effects; cases that need more are then not shown, with the reason.
package conform
