package accounts

import (
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/secure/precis"
)

// MaxName is the longest name of a user, in characters.
const MaxName = 100

// Name is the name of a user.
type Name struct {
	Shown string // without spaces at its ends, and in the normal form NFKC
	Key   string // folded to one case, too. No two users have the same key
}

// Errors of a name.
var (
	ErrNameInvalid  = errors.New("accounts: the name has characters that cannot be seen, or that are not text")
	ErrNameTooLong  = errors.New("accounts: the name is too long")
	ErrNameMixed    = errors.New("accounts: the name mixes alphabets whose letters look alike")
	ErrNameReserved = errors.New("accounts: the name is reserved")
)

// NewName normalises the name of a new user by the profile Nickname of RFC 8266. It rejects
// control characters, invisible characters and marks that change the direction of text,
// letters of several alphabets that look alike, and names that seem to belong to the server
// or its operators.
func NewName(text string) (Name, error) {
	n, err := ParseName(text)
	switch {
	case err != nil:
		return Name{}, err
	case mixed(n.Key):
		return Name{}, ErrNameMixed
	case slices.Contains(reserved(), n.Key):
		return Name{}, ErrNameReserved
	}
	return n, nil
}

// mixed reports whether a name has letters of two alphabets that share the look of some
// letters. Other scripts are often written together with Latin.
func mixed(key string) bool {
	alphabets := 0
	for _, table := range []*unicode.RangeTable{unicode.Latin, unicode.Cyrillic, unicode.Greek} {
		if strings.ContainsFunc(key, func(r rune) bool { return unicode.Is(table, r) }) {
			alphabets++
		}
	}
	return alphabets > 1
}

// ParseName normalises a name that may belong to a user.
func ParseName(text string) (Name, error) {
	shown, err := precis.Nickname.String(text)
	if err != nil {
		return Name{}, ErrNameInvalid
	}
	key, err := precis.Nickname.CompareKey(shown)
	if err != nil {
		return Name{}, ErrNameInvalid
	}
	if utf8.RuneCountInString(shown) > MaxName || utf8.RuneCountInString(key) > MaxName {
		return Name{}, ErrNameTooLong
	}
	return Name{shown, key}, nil
}

func reserved() []string {
	return []string{
		"semel", "admin", "administrator", "all", "anonymous", "bot", "channel", "chat", "everyone", "group", "here",
		"me", "moderator", "nobody", "null", "operator", "root", "security", "server", "staff", "support", "system", "undefined",
	}
}
