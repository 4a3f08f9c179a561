// Package semelgrpc makes unary gRPC methods safe to retry: a call that is repeated with the same
// idempotency key has one effect and receives the same response.
//
// On the server, [UnaryServerInterceptor] runs the chosen methods as operations. [DoTx] gives the
// handler a transaction that commits together with the response. [Do] claims the key first, for
// effects elsewhere and for handlers that call semel.InTx themselves. On the client,
// [UnaryClientInterceptor] gives each call a key and retries it.
//
// # What is stored
//
// A response is stored, and replayed to every later call with the key and the same request. So
// are the statuses INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS, FAILED_PRECONDITION and
// OUT_OF_RANGE: they are the operation's answer. UNAUTHENTICATED, PERMISSION_DENIED,
// RESOURCE_EXHAUSTED and ABORTED depend on the moment or on the caller: nothing happened, nothing
// is stored, and the key may be retried. After any other status, such as INTERNAL or UNAVAILABLE,
// the effect of [Do] is unknown, and the operation's policy decides what happens to the key; the
// transaction of [DoTx] was rolled back, so the key may be retried. An error that is no status and is
// marked with semel.NotCommitted is UNAVAILABLE with a RetryInfo. Headers and trailers that a
// handler sets are not stored.
//
// A response that is larger than the store keeps is sent to the first caller only; later calls
// receive RESULT_UNAVAILABLE. Of a status with more than 64 KiB only the code and the first 4 KiB of
// the message are stored and sent. An error whose status is OK is an error without a status.
//
// # Errors
//
// The errors of package semel are statuses with an ErrorInfo of the domain [Domain]. The reason of
// the ErrorInfo identifies the error. The client interceptor returns them so that errors.Is finds the error of
// package semel:
//
//	IN_PROGRESS         ABORTED, with RetryInfo        semel.ErrInProgress
//	IN_DOUBT            FAILED_PRECONDITION            semel.ErrInDoubt
//	OUTCOME_UNKNOWN     UNAVAILABLE, with RetryInfo    semel.ErrOutcomeUnknown
//	KEY_REUSED          INVALID_ARGUMENT               semel.ErrMismatch
//	KEY_EXPIRED         FAILED_PRECONDITION            semel.ErrKeyExpired
//	KEY_INVALID         INVALID_ARGUMENT               semel.ErrInvalid
//	RESULT_UNAVAILABLE  FAILED_PRECONDITION            semel.ErrResultUnavailable
//	UNAVAILABLE         UNAVAILABLE, with RetryInfo    semel.ErrUnavailable
//	UNAUTHENTICATED     UNAUTHENTICATED                none: ScopeFunc returned a scope without a name
//
// A stored failure that is no status of the handler, for example of an operator or of semel.Final,
// is FAILED_PRECONDITION with the failure's code as the reason.
package semelgrpc
