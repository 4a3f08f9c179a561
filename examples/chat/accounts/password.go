package accounts

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/secure/precis"
)

// Cost is the cost of one hash of argon2id.
type Cost struct {
	Memory  uint32 // in KiB
	Time    uint32 // passes over the memory
	Threads uint8
}

// DefaultCost is the recommendation of OWASP: 19 MiB, 2 passes, 1 thread.
func DefaultCost() Cost { return Cost{Memory: 19 << 10, Time: 2, Threads: 1} }

// String returns the cost as it is written in a hash: m=19456,t=2,p=1.
func (c Cost) String() string { return fmt.Sprintf("m=%d,t=%d,p=%d", c.Memory, c.Time, c.Threads) }

// Set parses the form of String, for package flag.
func (c *Cost) Set(text string) error {
	var n Cost
	rest := ""
	if _, err := fmt.Sscanf(text+" .", "m=%d,t=%d,p=%d %s", &n.Memory, &n.Time, &n.Threads, &rest); err != nil || rest != "." {
		return errors.New("want m=KiB,t=passes,p=threads")
	}
	if n.Time < 1 || n.Threads < 1 || n.Memory < 8*uint32(n.Threads) || n.Memory > 1<<20 {
		return errors.New("want at least one pass and one thread, and 8 KiB for each thread to 1 GiB of memory")
	}
	*c = n
	return nil
}

// Lengths of a password, in characters.
const (
	MinPassword = 8
	MaxPassword = 200
)

// Errors of passwords.
var (
	ErrPassword = errors.New("accounts: a password has 8 to 200 characters of text")
	// ErrBusy means that too many hashes are being computed. Nothing was done.
	ErrBusy = errors.New("accounts: too many passwords are being checked")
)

// The lengths of salts and hashes, in bytes.
const (
	saltSize = 16
	hashSize = 32
)

// Hasher hashes and checks passwords. It computes a limited number of hashes at a time, so
// that many callers at once need no more memory than that.
type Hasher struct {
	cost  Cost
	slots chan struct{}
	wait  time.Duration
	decoy string
}

// NewHasher returns a hasher that computes up to slots hashes at a time. Further callers
// wait up to wait, and then get ErrBusy.
func NewHasher(cost Cost, slots int, wait time.Duration) *Hasher {
	h := &Hasher{cost: cost, slots: make(chan struct{}, slots), wait: wait}
	h.decoy = encode(cost, make([]byte, saltSize), make([]byte, hashSize))
	return h
}

// CheckPassword returns ErrPassword if a new user may not have the password.
func CheckPassword(password string) error {
	_, err := normalise(password)
	return err
}

// Hash returns the hash of a new password, with its parameters, in the PHC string format.
// The errors are ErrPassword, ErrBusy and the end of ctx.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	text, err := normalise(password)
	if err != nil {
		return "", err
	}
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // never fails
	hash, err := h.compute(ctx, text, salt, h.cost, hashSize)
	if err != nil {
		return "", err
	}
	return encode(h.cost, salt, hash), nil
}

// Check reports whether encoded is the hash of the password. It takes as long for an empty
// hash, which is no password's, so that the time does not tell whether a user exists.
func (h *Hasher) Check(ctx context.Context, encoded, password string) (bool, error) {
	text, err := normalise(password)
	if err != nil {
		return false, nil //nolint:nilerr // no user has such a password
	}
	if encoded == "" {
		encoded = h.decoy
	}
	cost, salt, want, err := decode(encoded)
	if err != nil {
		return false, err
	}
	got, err := h.compute(ctx, text, salt, cost, len(want))
	if err != nil {
		return false, err
	}
	return subtle.ConstantTimeCompare(got, want) == 1 && encoded != h.decoy, nil
}

func (h *Hasher) compute(ctx context.Context, text string, salt []byte, cost Cost, size int) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, h.wait, ErrBusy)
	defer cancel()
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return argon2.IDKey([]byte(text), salt, cost.Time, cost.Memory, cost.Threads, uint32(size)), nil //nolint:gosec // a few bytes
}

// normalise returns the same text for a password, whichever keyboard it was typed on.
func normalise(password string) (string, error) {
	if n := utf8.RuneCountInString(password); n < MinPassword || n > MaxPassword || !utf8.ValidString(password) {
		return "", ErrPassword
	}
	text, err := precis.OpaqueString.String(password)
	if err != nil {
		return "", ErrPassword
	}
	return text, nil
}

func encode(c Cost, salt, hash []byte) string {
	return fmt.Sprintf("$argon2id$v=%d$%s$%s$%s", argon2.Version, c,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(hash))
}

func decode(encoded string) (c Cost, salt, hash []byte, err error) {
	parts := strings.Split(encoded, "$")
	if len(parts) != 6 || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return c, nil, nil, errors.New("accounts: the stored hash has another form")
	}
	err = c.Set(parts[3])
	if err == nil {
		salt, err = base64.RawStdEncoding.DecodeString(parts[4])
	}
	if err == nil {
		hash, err = base64.RawStdEncoding.DecodeString(parts[5])
	}
	if err != nil || len(hash) == 0 {
		return c, nil, nil, fmt.Errorf("accounts: the stored hash is damaged: %w", err)
	}
	return c, salt, hash, nil
}
