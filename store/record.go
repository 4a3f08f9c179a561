package store

import "time"

// Longest identities a store must keep, in bytes. The engine refuses longer
// ones before it asks a store.
const (
	MaxOperation = 255
	MaxScope     = 1024
	MaxKey       = 255
)

// Token names one write of a record. Two equal tokens of one ID mean the same
// write. The zero Token means that nothing stands.
type Token struct {
	State   State
	Attempt uint32 // claims so far: 1, 2, 3 …
	Owner   uint64 // random, drawn by the writer; with Attempt it is the fencing token
}

// Record remembers one key of one operation. Its durations are relative to the
// store's clock: what is left when read, from now on when written.
type Record struct {
	ID ID
	Token

	// Due is, for Pending, when it may be claimed, and for InProgress, when the
	// lease ends. Zero or less: the time has come. Other states have none and
	// read as zero.
	Due time.Duration
	// Expire is when the record may be purged. Written as zero: never, and it
	// then reads as zero. Read as less than zero: it may be purged now.
	// InProgress and InDoubt never expire.
	Expire time.Duration
	// Age is the time since the record was created. Only read.
	Age time.Duration
	// Since is the time since the token last changed; a heartbeat does not
	// change it. Only read.
	Since time.Duration

	// Operation, Scope, Key, Fingerprint and Priority are written when nothing
	// stands, and never change afterwards. All bytes are kept as they are: NUL
	// bytes, invalid UTF-8 and letter case included.
	Operation   string
	Scope, Key  string
	Fingerprint []byte
	// Priority says who goes first among those that wait: MinPriority to
	// MaxPriority.
	Priority int8

	// Tainted says that an earlier attempt may have had an effect nobody knows
	// of, so that a refusal seen by a later one proves nothing about it.
	Tainted bool
	// Input and Outcome are kept as they stand when written as nil. A store
	// need not tell nil from empty when it reads.
	Input, Outcome []byte
}

// Change asks for one compare-and-swap. If If stands, and with IfDue its Due has
// come by the store's clock at the moment of the write, then To stands
// afterwards. IfDue is asked only of states that have a Due. The zero If means that nothing may stand: a create. If and To of
// one token, as a heartbeat sends, change the times and nothing else.
type Change struct {
	If    Token
	IfDue bool
	To    Record
}

// SwapResult answers one Change or one ID.
type SwapResult struct {
	// Token is what stands now. A change is in force, by this call or by an
	// earlier one whose answer was lost, exactly when it equals the change's
	// To.Token.
	Token Token
	// Record is all of what stands, when that is something else than To; Get
	// gives it always. Nil when nothing stands.
	Record *Record
	// Busy means that an open transaction of somebody else holds the record.
	// Nothing is known; ask again.
	Busy bool
	// Err means that this one was refused and nothing was written, for its
	// size for instance. Its neighbours are not touched.
	Err error
}

// Applied reports whether s says that c is in force.
func (s SwapResult) Applied(c Change) bool { return s.HasToken(c.To.Token) }

// HasToken reports whether s says that t stands: the change to it is in force.
func (s SwapResult) HasToken(t Token) bool { return s.Err == nil && !s.Busy && s.Token == t }
