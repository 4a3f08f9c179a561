package outbox_test

import (
	"os"
	"testing"

	"github.com/semelgo/semel/internal/realtest"
)

// TestMain ends the servers that tests have started.
func TestMain(m *testing.M) { os.Exit(realtest.Main(m)) }
