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
		want, err := accounts.NewName(same[0])
		if err != nil {
			t.Fatal(err)
		}
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
	if _, err := accounts.ParseName("Semel"); err != nil {
		t.Errorf("ParseName of a reserved name: %v", err)
	}
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
		if ok, err := other.Check(t.Context(), hash, password); ok != want || err != nil {
			t.Errorf("Check(%q) = %v, %v; want %v", password, ok, err, want)
		}
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
		if _, err := h.Hash(t.Context(), password); !errors.Is(err, accounts.ErrPassword) {
			t.Errorf("Hash(%q) = %v, want ErrPassword", password, err)
		}
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
			if _, err := h.Hash(t.Context(), "correct horse"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	runtime.ReadMemStats(&after)
	if grown := (after.Sys - before.Sys) >> 20; grown > 512 {
		t.Errorf("the process has %d MiB more, want at most 512", grown)
	}
	full := accounts.NewHasher(cheap(), 0, time.Millisecond)
	if _, err := full.Hash(t.Context(), "correct horse"); !errors.Is(err, accounts.ErrBusy) {
		t.Errorf("Hash = %v, want ErrBusy", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := accounts.NewHasher(cheap(), 0, time.Minute).Hash(ended, "correct horse"); !errors.Is(err, context.Canceled) {
		t.Errorf("Hash with an ended context: %v", err)
	}
}

func TestCostIsParsed(t *testing.T) {
	t.Parallel()
	var c accounts.Cost
	if err := c.Set(accounts.DefaultCost().String()); err != nil || c != accounts.DefaultCost() {
		t.Errorf("Set(%q): %+v, %v", accounts.DefaultCost(), c, err)
	}
	for _, wrong := range []string{"", "m=1", "m=64,t=0,p=1", "m=64,t=1,p=0", "m=7,t=1,p=1", "m=64,t=1,p=1,x", "m=2000000,t=1,p=1"} {
		if err := c.Set(wrong); err == nil {
			t.Errorf("Set(%q) has no error", wrong)
		}
	}
}

func TestLimiter(t *testing.T) {
	t.Parallel()
	l, now := accounts.NewLimiter(3, time.Minute), time.Unix(0, 0)
	allowed := func(key string) bool {
		_, ok := l.Allow(key, now)
		return ok
	}
	for i, want := range []bool{true, true, true, false, false} {
		if got := allowed("a"); got != want {
			t.Errorf("request %d: %v, want %v", i, got, want)
		}
	}
	if !allowed("b") {
		t.Error("another key is limited, too")
	}
	after, _ := l.Allow("a", now)
	if after != 20*time.Second {
		t.Errorf("the next one may come after %v, want 20s", after)
	}
	now = now.Add(after)
	if !allowed("a") || allowed("a") {
		t.Error("want one request after that time")
	}
	now = now.Add(time.Hour)
	for i, want := range []bool{true, true, true, false} {
		if got := allowed("a"); got != want {
			t.Errorf("after an hour, request %d: %v, want %v", i, got, want)
		}
	}
	if _, ok := accounts.NewLimiter(0, time.Minute).Allow("a", now); !ok {
		t.Error("a limiter without a limit refuses")
	}
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
			if _, ok := l.Allow(strconv.Itoa(next), now); !ok {
				t.Fatalf("key %d is refused", next)
			}
		}
	}
	flood(150_000)
	if _, ok := l.Allow("a", now); !ok {
		t.Error("a new key is refused")
	}
	for range 5 {
		flood(49_999)
		if _, ok := l.Allow("a", now); ok {
			t.Error("a key is forgotten although it was used")
		}
	}
	flood(100_000)
	if _, ok := l.Allow("a", now); !ok {
		t.Error("a key is remembered through 100,000 others")
	}
}
