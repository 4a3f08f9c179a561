package load

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"time"

	"github.com/semelgo/semel/semelhttp/client"
)

// api calls the servers over HTTP, and retries each call under one key.
type api struct {
	servers []string
	http    http.Client
}

// account is a user of the chat, and the groups that it is a member of.
type account struct {
	id     int64
	name   string
	token  string
	groups []string
}

func newAPI(servers []string) *api {
	return &api{servers: servers, http: http.Client{Transport: &client.Transport{Budget: 2 * time.Minute}}}
}

// server returns one of the servers at random.
func (a *api) server() string { return a.servers[mathrand.IntN(len(a.servers))] }

// signUp creates an account with a random name and signs it in.
func (a *api) signUp(ctx context.Context) (*account, error) {
	type credentials struct {
		Name     string `json:"name"`
		Password string `json:"password"`
	}
	in := credentials{Name: "load-" + rand.Text()[:16], Password: rand.Text()}
	if err := a.call(ctx, "", http.MethodPost, "/v1/users", in, nil); err != nil {
		return nil, err
	}
	var out struct {
		Token string
		User  struct{ ID int64 }
	}
	if err := a.call(ctx, "", http.MethodPost, "/v1/sessions", in, &out); err != nil {
		return nil, err
	}
	return &account{id: out.User.ID, name: in.Name, token: out.Token}, nil
}

// createGroup creates a group and returns its ID.
func (a *api) createGroup(ctx context.Context, owner *account, name string, members []*account) (string, error) {
	in := struct {
		Name    string  `json:"name"`
		Members []int64 `json:"member_ids"`
	}{Name: name, Members: []int64{}}
	for _, m := range members {
		in.Members = append(in.Members, m.id)
	}
	var out struct{ ID string }
	err := a.call(ctx, owner.token, http.MethodPost, "/v1/groups", in, &out)
	return out.ID, err
}

// message is a message of a group.
type message struct {
	ID       string `json:"id"`
	Seq      int64  `json:"seq"`
	Change   int64  `json:"change"`
	Group    string `json:"group_id"`
	AuthorID int64  `json:"author_id"`
	Text     string `json:"text"`
}

// page is a page of messages. Change is the last change of the group.
type page struct {
	Messages []message `json:"messages"`
	Change   int64     `json:"change"`
}

// pageSize is the number of messages of one page.
const pageSize = 200

// changes returns the next page of messages that changed after a change.
func (a *api) changes(ctx context.Context, as *account, group string, after int64) (page, error) {
	var out page
	path := fmt.Sprintf("/v1/groups/%s/messages?changed_after=%d&limit=%d", group, after, pageSize)
	err := a.call(ctx, as.token, http.MethodGet, path, nil, &out)
	return out, err
}

// lastChange returns the number of a group's last change.
func (a *api) lastChange(ctx context.Context, as *account, group string) (int64, error) {
	var out page
	err := a.call(ctx, as.token, http.MethodGet, fmt.Sprintf("/v1/groups/%s/messages?limit=1", group), nil, &out)
	return out.Change, err
}

// history returns all messages of a group, in order.
func (a *api) history(ctx context.Context, as *account, group string) ([]message, error) {
	var all []message
	for {
		var after int64
		if len(all) > 0 {
			after = all[len(all)-1].Seq
		}
		var out page
		path := fmt.Sprintf("/v1/groups/%s/messages?after=%d&limit=%d", group, after, pageSize)
		if err := a.call(ctx, as.token, http.MethodGet, path, nil, &out); err != nil {
			return nil, err
		}
		all = append(all, out.Messages...)
		if len(out.Messages) < pageSize {
			return all, nil
		}
	}
}

// call sends one request, and retries it until it is answered.
func (a *api) call(ctx context.Context, token, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, a.server()+path, body)
	if err != nil {
		return err
	}
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := a.http.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, answer)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer, out)
}
