package mysql

// NewClaim is the claim of one process on a Galera cluster.
var NewClaim = newClaim

// Take, Renew and Release are its steps.
var (
	Take    = (*claim).take
	Renew   = (*claim).renew
	Release = (*claim).release
)

// ErrClaimLost is what Renew returns after a takeover.
var ErrClaimLost = errClaimLost
