package client_test

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp/client"
)

// TestTransportReportsItsTries: OnRetry is told of each try that is followed by
// another, with the wait that then really takes place, and the response says how
// many tries there were.
func TestTransportReportsItsTries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		torn := errors.New("torn")
		b := &tripper{answer: func(try int, r *http.Request) (*http.Response, error) {
			switch try {
			case 1:
				return nil, torn
			case 2:
				return respond(r, http.StatusConflict, "Retry-After", "3"), nil
			default:
				return respond(r, http.StatusCreated), nil
			}
		}}
		var told []client.Retry
		tr := &client.Transport{Base: b, OnRetry: func(r client.Retry) { told = append(told, r) }}
		r := post(t, "http://x", newBody("bytes"))
		resp := check.Must(tr.RoundTrip(r))(t)
		defer resp.Body.Close()
		check.Equal(t, client.TriesOf(resp), 3, "TriesOf")
		if len(told) != 2 {
			t.Fatalf("OnRetry was called %d times, want 2", len(told))
		}
		if told[0].Status != 0 || !errors.Is(told[0].Err, torn) || told[1].Status != http.StatusConflict || told[1].Err != nil {
			t.Errorf("OnRetry got %+v", told)
		}
		var waits []time.Duration
		for i, retry := range told {
			waits = append(waits, retry.Wait)
			if retry.Try != i+1 || retry.Request != r || retry.Key != resp.Request.Header.Get(headerKey) {
				t.Errorf("call %d of OnRetry got try %d, key %q", i+1, retry.Try, retry.Key)
			}
		}
		if !slices.Equal(waits, b.waits()) {
			t.Errorf("OnRetry received the waits %v, and they were %v", waits, b.waits())
		}
	})
}

// TestTransportReportsOnlyRetriesThatItMakes after the last try that is allowed.
func TestTransportReportsOnlyRetriesThatItMakes(t *testing.T) {
	t.Parallel()
	s, url := plays(t, status(http.StatusServiceUnavailable))
	calls := 0
	resp := check.Must(quick(&client.Transport{MaxTries: 1, OnRetry: func(client.Retry) { calls++ }}).RoundTrip(post(t, url, nil)))(t)
	defer resp.Body.Close()
	if n := client.TriesOf(resp); calls != 0 || n != 1 {
		t.Errorf("OnRetry was called %d times, TriesOf = %d; want 0 and 1", calls, n)
	}
	s.wantSame(t, 1, "")
	check.Equal(t, client.TriesOf(new(http.Response)), 0, "TriesOf a response from elsewhere")
}

// TestTransportRequiresAKey: with RequireKey a POST needs a key of its own, and no
// request is sent without one.
func TestTransportRequiresAKey(t *testing.T) {
	t.Parallel()
	s, url := plays(t, status(http.StatusOK))
	b := newBody("x")
	_, err := quick(&client.Transport{RequireKey: true}).RoundTrip(post(t, url, b))
	wantFieldError(t, err, headerKey)
	b.wantClosed(t)
	s.none(t)

	named := post(t, url, nil)
	named.Header.Set(headerKey, "k")
	trip(t, &client.Transport{RequireKey: true}, named)
	made := &client.Transport{RequireKey: true, KeyFunc: func(*http.Request) (string, error) { return "made", nil }}
	trip(t, made, post(t, url, nil))
	get := post(t, url, nil)
	get.Method = http.MethodGet
	trip(t, &client.Transport{RequireKey: true}, get)
	check.Equal(t, len(s.arrived()), 3, "requests came")
}
