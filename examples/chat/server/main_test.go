package server_test

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"
)

// childVariable tells the test binary to be another program: a chat server that
// ends itself where it is told to, or one attempt under a policy.
const childVariable = "SEMEL_CHAT_CHILD"

// TestMain lets more tests run at a time than there are processors: most of what
// they do is to wait for a lease.
func TestMain(m *testing.M) {
	if name := os.Getenv(childVariable); name != "" {
		os.Exit(beChild(name))
	}
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(max(6, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// soaking tells whether tests take their time.
func soaking() bool { return os.Getenv("SEMEL_SOAK") == "1" }

// rounds is n, or many more when soaking.
func rounds(n int) int {
	if soaking() {
		return max(50, 5*n)
	}
	return n
}
