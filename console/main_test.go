package console_test

import (
	"os"
	"testing"

	"github.com/semelgo/semel/internal/realtest"
)

func TestMain(m *testing.M) { os.Exit(realtest.Main(m)) }
