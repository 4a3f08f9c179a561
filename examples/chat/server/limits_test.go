package server

import (
	"net/http"
	"testing"
)

// TestAddressBehindProxies: only trusted proxies may name the client, and a client cannot
// invent an address before theirs.
func TestAddressBehindProxies(t *testing.T) {
	t.Parallel()
	var c config
	if err := c.setProxies("10.0.0.0/8,::1/128"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		from      string
		forwarded []string
		want      string
	}{
		{"203.0.113.9:1", nil, "203.0.113.9"},
		{"203.0.113.9:1", []string{"198.51.100.1"}, "203.0.113.9"}, // not a proxy
		{"10.0.0.1:1", nil, "10.0.0.1"},
		{"10.0.0.1:1", []string{"198.51.100.1"}, "198.51.100.1"},
		{"10.0.0.1:1", []string{"1.1.1.1, 198.51.100.1"}, "198.51.100.1"}, // the first is invented
		{"10.0.0.1:1", []string{"1.1.1.1", "198.51.100.1,10.2.3.4"}, "198.51.100.1"},
		{"10.0.0.1:1", []string{"1.1.1.1, nonsense, 10.2.3.4"}, "10.2.3.4"},
		{"10.0.0.1:1", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"[::1]:1", []string{"198.51.100.1:4711"}, "198.51.100.1"},
		{"[::1]:1", []string{"[2001:db8:1:2:3::4]:4711"}, "2001:db8:1:2::/64"},
		{"[::ffff:10.0.0.1]:1", []string{"2001:db8:1:2:3::4%eth0"}, "2001:db8:1:2::/64"},
	} {
		r := &http.Request{RemoteAddr: test.from, Header: http.Header{"X-Forwarded-For": test.forwarded}}
		behind, direct := userService{app: &app{config: c}}, userService{app: &app{}}
		if got := behind.addressOf(r); got != test.want {
			t.Errorf("from %s, forwarded for %q: %s, want %s", test.from, test.forwarded, got, test.want)
		}
		if got, own := direct.addressOf(r), direct.addressOf(&http.Request{RemoteAddr: test.from}); got != own {
			t.Errorf("from %s without trusted proxies: %s, want %s", test.from, got, own)
		}
	}
}
