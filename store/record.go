package store

import "time"

// The longest identities that a store must keep, in bytes. The engine refuses
// longer ones.
const (
	MaxOperation = 255
	MaxScope     = 1024
	MaxKey       = 255
)

// Token identifies one write of a record. Two equal tokens of one ID mean the same
// write. The zero Token means that there is no record.
type Token struct {
	State   State
	Attempt uint32 // number of claims: 1, 2, 3 …
	Owner   uint64 // random number of the writer; with Attempt it is the fencing token
}

// Record is the record of one key of one operation. Its durations are relative to
// the store's clock: remaining times when read, and times from now on when written.
type Record struct {
	ID ID
	Token

	// Due is when a Pending record may be claimed, or when the lease of an
	// InProgress record expires. Zero or negative: now. Other states have none; it
	// is then read as zero.
	Due time.Duration
	// Expire is when the record may be purged. Zero: never. Read as negative: it
	// may be purged now. InProgress and InDoubt records never expire.
	Expire time.Duration
	// Age is the time since the record was created. Only read.
	Age time.Duration
	// Since is the time since the last change of the token; a heartbeat does not
	// change the token. Only read.
	Since time.Duration

	// Operation, Scope, Key, Fingerprint and Priority are written by a create, and
	// never change. All bytes are kept unchanged: NUL bytes, invalid UTF-8 and
	// letter case included.
	Operation   string
	Scope, Key  string
	Fingerprint []byte
	// Priority orders Pending records: MinPriority to MaxPriority. A higher
	// priority is claimed first.
	Priority int8

	// Tainted means that an earlier attempt may have had an unknown effect, so that
	// the refusal of a later attempt proves nothing about it.
	Tainted bool
	// Input and Outcome keep their current value if they are written as nil. When
	// read, empty and nil are the same.
	Input, Outcome []byte
}

// Change is one compare-and-swap: if the current token is If, and with IfDue the
// record is due by the store's clock at the moment of the write, the record becomes
// To. IfDue is used only for states that have a Due. The zero If means a create:
// there must be no record. If If and To have the same token, as in a heartbeat,
// only the times change.
type Change struct {
	If    Token
	IfDue bool
	To    Record
}

// SwapResult is the result for one Change or one ID.
type SwapResult struct {
	// Token is the current token. The change has been applied, by this call or by
	// an earlier one whose reply was lost, exactly if the token equals the change's
	// To.Token.
	Token Token
	// Record is the current record if its token is not the change's. Get always
	// returns it. It is nil if there is no record.
	Record *Record
	// Busy means that another open transaction holds the record. Nothing is known;
	// retry.
	Busy bool
	// Err means that this change was refused and nothing was written, because of
	// its size for instance. Other changes of the batch are not affected.
	Err error
}

// Applied reports whether the change has been applied.
func (s SwapResult) Applied(c Change) bool { return s.HasToken(c.To.Token) }

// HasToken reports whether t is the current token.
func (s SwapResult) HasToken(t Token) bool { return s.Err == nil && !s.Busy && s.Token == t }
