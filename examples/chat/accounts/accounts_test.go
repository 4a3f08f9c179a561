package accounts_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel/examples/chat/accounts"
	"github.com/semelgo/semel/internal/check"
)

// cheap is a cost for tests.
func cheap() accounts.Cost { return accounts.Cost{Memory: 64, Time: 1, Threads: 1} }

func TestNamesThatLookAlikeAreEqual(t *testing.T) {
	t.Parallel()
	for _, same := range [][]string{
		{"Ada Lovelace", "  ada   LOVELACE ", "Ada\u00a0Lovelace"},
		{"Zoë", "Zoe\u0308", "ZOË"},
		{"Ａｄａ", "Ada", "ᴬda"},
		{"ﬁne", "FINE"},
	} {
		want := check.Must(accounts.NewName(same[0]))(t)
		for _, text := range same[1:] {
			if n, err := accounts.NewName(text); err != nil || n.Key != want.Key {
				t.Errorf("%q has the key %q, %v; want %q, as %q has", text, n.Key, err, want.Key, same[0])
			}
		}
	}
	if n, err := accounts.NewName(" Zoe\u0308  Weiß "); err != nil || n.Shown != "Zoë Weiß" {
		t.Errorf("the name is shown as %q, %v", n.Shown, err)
	}
}

func TestNamesAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]error{
		"":                          accounts.ErrNameInvalid,
		" ":                         accounts.ErrNameInvalid,
		"a\u202eb":                  accounts.ErrNameInvalid, // right to left
		"a\u200bb":                  accounts.ErrNameInvalid, // no width
		"a\x00b":                    accounts.ErrNameInvalid,
		"a\nb":                      accounts.ErrNameInvalid,
		"\u2028":                    accounts.ErrNameInvalid,
		"\u0405emel":                accounts.ErrNameMixed, // a Cyrillic letter that looks like S
		"Semel":                     accounts.ErrNameReserved,
		" ＳＥＭＥＬ ":                   accounts.ErrNameReserved,
		"Admin":                     accounts.ErrNameReserved,
		"me":                        accounts.ErrNameReserved,
		strings.Repeat("é", 101):    accounts.ErrNameTooLong,
		strings.Repeat("\ufdfa", 9): accounts.ErrNameTooLong, // 18 characters each in NFKC
	} {
		if n, err := accounts.NewName(text); !errors.Is(err, want) {
			t.Errorf("NewName(%q) = %+v, %v; want %v", text, n, err, want)
		}
	}
	for _, text := range []string{"Юлия", "Ελένη", "李 Ada", "さくらサクラ桜", "O'Neil-Smith 3rd"} {
		if n, err := accounts.NewName(text); err != nil || n.Shown != text {
			t.Errorf("NewName(%q) = %+v, %v", text, n, err)
		}
	}
	check.NoError(t, check.Err(accounts.ParseName("Semel")), "ParseName of a reserved name")
}

func TestPasswords(t *testing.T) {
	t.Parallel()
	h := accounts.NewHasher(cheap(), 1, time.Minute)
	hash, err := h.Hash(t.Context(), "correct hor\u0065\u0301e")
	if err != nil || !strings.HasPrefix(hash, "$argon2id$v=19$m=64,t=1,p=1$") {
		t.Fatalf("Hash = %q, %v", hash, err)
	}
	if again, err := h.Hash(t.Context(), "correct hor\u00e9e"); err != nil || again == hash {
		t.Errorf("two hashes of one password are %q and %q, %v; want another salt", hash, again, err)
	}
	// A hasher of another cost checks hashes of every cost.
	other := accounts.NewHasher(accounts.Cost{Memory: 128, Time: 2, Threads: 1}, 1, time.Minute)
	for password, want := range map[string]bool{"correct hor\u00e9e": true, "correct horse": false, "": false, "short": false} {
		check.Result(other.Check(t.Context(), hash, password))(t, want, "Check(%q)", password)
	}
	if ok, err := h.Check(t.Context(), "", "correct horse"); ok || err != nil {
		t.Errorf("Check of no user = %v, %v", ok, err)
	}
	for _, damaged := range []string{"plain", "$argon2id$v=19$m=64,t=1,p=1$AAAA$", "$argon2id$v=19$m=4294967295,t=1,p=1$AAAA$AAAA"} {
		if ok, err := h.Check(t.Context(), damaged, "correct horse"); ok || err == nil {
			t.Errorf("Check with the hash %q = %v, %v; want an error", damaged, ok, err)
		}
	}
	for _, password := range []string{"", "1234567", strings.Repeat("x", 201), "with\x00a control character", "\xff is not UTF-8"} {
		check.ErrorIs(t, check.Err(h.Hash(t.Context(), password)), accounts.ErrPassword, "Hash(%q)", password)
	}
}

// TestHashesAreBounded computes many hashes at once, which together would need a GiB.
func TestHashesAreBounded(t *testing.T) {
	h := accounts.NewHasher(accounts.Cost{Memory: 32 << 10, Time: 1, Threads: 1}, 2, time.Minute)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			check.NoError(t, check.Err(h.Hash(t.Context(), "correct horse")))
		})
	}
	all.Wait()
	runtime.ReadMemStats(&after)
	if grown := (after.Sys - before.Sys) >> 20; grown > 512 {
		t.Errorf("the process has %d MiB more, want at most 512", grown)
	}
	full := accounts.NewHasher(cheap(), 0, time.Millisecond)
	check.ErrorIs(t, check.Err(full.Hash(t.Context(), "correct horse")), accounts.ErrBusy, "Hash")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	check.ErrorIs(t, check.Err(accounts.NewHasher(cheap(), 0, time.Minute).Hash(ended, "correct horse")), context.Canceled, "Hash with an ended context")
}

func TestCostIsParsed(t *testing.T) {
	t.Parallel()
	var c accounts.Cost
	if err := c.Set(accounts.DefaultCost().String()); err != nil || c != accounts.DefaultCost() {
		t.Errorf("Set(%q): %+v, %v", accounts.DefaultCost(), c, err)
	}
	for _, wrong := range []string{"", "m=1", "m=64,t=0,p=1", "m=64,t=1,p=0", "m=7,t=1,p=1", "m=64,t=1,p=1,x", "m=2000000,t=1,p=1"} {
		check.Fails(t, c.Set(wrong), "Set(%q)", wrong)
	}
}

func allowed(l *accounts.Limiter, key string, now time.Time) bool {
	_, ok := l.Allow(key, now)
	return ok
}

func TestLimiter(t *testing.T) {
	t.Parallel()
	l, now := accounts.NewLimiter(3, time.Minute), time.Unix(0, 0)
	for i, want := range []bool{true, true, true, false, false} {
		check.Equal(t, allowed(l, "a", now), want, "request %d", i)
	}
	check.Equal(t, allowed(l, "b", now), true, "another key is allowed")
	after, _ := l.Allow("a", now)
	check.Equal(t, after, 20*time.Second, "the time to the next one")
	now = now.Add(after)
	for _, want := range []bool{true, false} {
		check.Equal(t, allowed(l, "a", now), want, "after that time")
	}
	now = now.Add(time.Hour)
	for i, want := range []bool{true, true, true, false} {
		check.Equal(t, allowed(l, "a", now), want, "after an hour, request %d", i)
	}
	check.Equal(t, allowed(accounts.NewLimiter(0, time.Minute), "a", now), true, "a limiter without a limit allows")
}

// TestLimiterForgets: a flood of keys refuses no other key, and a key is remembered through 50,000
// others.
func TestLimiterForgets(t *testing.T) {
	t.Parallel()
	l, now := accounts.NewLimiter(1, time.Minute), time.Unix(0, 0)
	next := 0
	flood := func(n int) {
		for range n {
			next++
			check.Equal(t, allowed(l, strconv.Itoa(next), now), true, "key %d is allowed", next)
		}
	}
	flood(150_000)
	check.Equal(t, allowed(l, "a", now), true, "a new key is allowed")
	for range 5 {
		flood(49_999)
		check.Equal(t, allowed(l, "a", now), false, "a key that was used is allowed")
	}
	flood(100_000)
	check.Equal(t, allowed(l, "a", now), true, "a key is allowed after 100,000 others")
}
