//go:build unix

package messages_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/semelgo/semel/internal/realtest"
)

// childVariable makes the test binary a consumer, as its JSON says.
const childVariable = "SEMEL_MESSAGES_CONSUMER"

func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		var c consumer
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			panic(err)
		}
		if err := c.run(); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(realtest.Main(m))
}
