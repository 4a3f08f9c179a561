package doctest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/semelhttp"
)

// TestPaymentProgram runs the program of docs/recipes/payment.md as the page does: a replay, a
// crash after the charge, and the retry, which finds the charge of the first attempt.
func TestPaymentProgram(t *testing.T) {
	const page, pageAddr = "docs/recipes/payment.md", "127.0.0.1:8082"
	var source string
	for _, b := range blocks(read(t, page)) {
		if strings.Contains(b.text, "package main") {
			source = b.text
		}
	}
	dir, addr, text := t.TempDir(), freeAddr(t), read(t, page)
	binary := build(t, strings.ReplaceAll(source, pageAddr, addr))
	pay := func(base, key, body string) (status int, replayed, answer string) {
		r := check.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/payments", strings.NewReader(body)))(t)
		r.Header.Set("X-User", "ann")
		r.Header.Set(semelhttp.HeaderKey, key)
		res, err := testClient.Do(r)
		if err != nil {
			return 0, "", err.Error()
		}
		defer res.Body.Close()
		var b strings.Builder
		check.Require(t, res.Write(&b))
		_, answer, _ = strings.Cut(b.String(), "\r\n\r\n")
		return res.StatusCode, res.Header.Get(semelhttp.HeaderReplayed), strings.TrimSpace(answer)
	}
	shown := func(answer string) {
		if !strings.Contains(text, "\n"+answer+"\n") {
			t.Errorf("%s does not show the response %q", page, answer)
		}
	}

	t.Run("crash", func(t *testing.T) { // with an end of its own, so that the next process can take the address
		base := startIn(t, dir, binary, addr, "CRASH=1")
		status, _, answer := pay(base, "o-0", `{"amount":700}`)
		check.Equal(t, status, 0, "the process died: %s", answer)
	})
	base := startIn(t, dir, binary, addr)
	realtest.Poll(t, "the lease to expire", func() bool {
		status, _, answer := pay(base, "o-0", `{"amount":700}`)
		if status == http.StatusOK {
			check.Equal(t, answer, `{"amount":700,"charge":1}`, "the charge of the first attempt")
		}
		return status != http.StatusConflict
	})
	for _, want := range []string{"", "true"} {
		status, replayed, answer := pay(base, "o-17", `{"amount":700}`)
		check.Equal(t, status, http.StatusOK, "a payment")
		check.Equal(t, replayed, want, "a payment: replayed")
		shown(answer)
	}
	for _, want := range []string{"", "true"} {
		status, replayed, answer := pay(base, "o-19", `{"amount":200000}`)
		check.Equal(t, status, http.StatusUnprocessableEntity, "a declined payment: %s", answer)
		check.Equal(t, replayed, want, "a declined payment: replayed")
	}
}
