package server_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/examples/chat/server"
)

// TestPageShowsTheQueue holds a welcome and checks that the page counts it, and that
// the page updates by itself when the welcome goes on.
func TestPageShowsTheQueue(t *testing.T) {
	t.Parallel()
	b, hold := browse(t), newBarrier()
	to := server.Hooks{Welcome: func(next server.WelcomeFunc) server.WelcomeFunc {
		return func(ctx context.Context, tx chatdb.Tx, in server.Welcome) (chatdb.Message, error) {
			hold.pass()
			return next(ctx, tx, in)
		}
	}}
	rabbit := newRabbit(t)
	s := serveLocal(t, to, rabbit.args(newPostgres(t, inline).args(time.Minute))...)
	ann := b.signIn(t, s.base, "Ann")
	b.Do(t, chromedp.Navigate(s.base+"/retries"))
	b.wantQueue(t, welcomeRow, 0, 0, 0)
	hold.armed.Store(true)
	group := s.send(t, creation(ann, "k", "crew")).want(t, http.StatusCreated, "").value(t)["id"].(string)
	hold.await(t)
	b.wantQueue(t, welcomeRow, 0, 1, 0)
	b.Shoot(t, "queue-held")
	close(hold.open)
	b.wantQueue(t, welcomeRow, 0, 0, 1)
	rabbit.publish(t, outside("1", group, ann.ID, "Your invoice is paid."))
	b.wantQueue(t, importRow, 0, 0, 1)
	rabbit.publish(t, outside("1", group, ann.ID, "Your invoice is paid."))
	b.Until(t, `document.getElementById("queue-import").textContent.includes("deliveries 2, written 1, duplicates 1,")`)
	b.phone(t)
	b.wantNarrow(t)
	b.Do(t, chromedp.Navigate(s.base+"/#/g/"+group))
	b.Until(t, `document.querySelectorAll("#messages li.server").length === 1`)
	b.Until(t, `document.querySelectorAll("#messages li.mine").length === 1`)
}

// Rows of the page's table.
const (
	welcomeRow = "Welcomes"
	importRow  = "Imported messages"
)

// wantQueue waits until a row of the page's table shows these numbers.
func (b *browser) wantQueue(t *testing.T, row string, waiting, running, done int) {
	t.Helper()
	b.Until(t, fmt.Sprintf(`[...document.querySelectorAll("#queue tbody tr")]
		.some((tr) => [...tr.cells].map((cell) => cell.textContent).join() === "%s,%d,%d,%d,0,0")`, row, waiting, running, done))
}
