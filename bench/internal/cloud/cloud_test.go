package cloud_test

import (
	"debug/elf"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/semelgo/semel/bench/internal/cloud"
)

// echo listens for connections and sends back what it is told.
func echo(t *testing.T) (addr string) {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return l.Addr().String()
}

func exchange(t *testing.T, conn net.Conn, request string, replies ...int) {
	t.Helper()
	if _, err := conn.Write([]byte(request)); err != nil {
		t.Error(err)
	}
	var got []byte
	for _, n := range replies {
		reply := make([]byte, n)
		if _, err := io.ReadFull(conn, reply); err != nil {
			t.Error(err)
		}
		got = append(got, reply...)
	}
	if string(got) != request {
		t.Errorf("read %q, want %q", got, request)
	}
}

// A reply waits once, however many reads it takes; the next one waits again.
func TestAReplyWaitsOnce(t *testing.T) {
	t.Parallel()
	n := cloud.NewLine()
	conn, err := n.Dial(t.Context(), "tcp", echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for range 3 {
		done := make(chan struct{})
		go func() {
			defer close(done)
			exchange(t, conn, "semel", 2, 3)
		}()
		n.Next()
		<-done
		if n.Waiting() {
			t.Error("what came with the reply waits too")
		}
	}
}

// Replies of many connections come through, each whole, and to whom they belong.
func TestRepliesOfManyComeThrough(t *testing.T) {
	t.Parallel()
	dial, closing := cloud.Real(10 * time.Microsecond)
	addr := echo(t)
	done := make(chan struct{})
	const conns = 16
	for i := range conns {
		go func() {
			defer func() { done <- struct{}{} }()
			conn, err := dial(t.Context(), "tcp", addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			for range 50 {
				exchange(t, conn, string(rune('a'+i))+"semel", 6)
			}
		}()
	}
	for range conns {
		<-done
	}
	closing()
}

// The library has what the server calls to have something written.
func TestTheSlowDiskHasWhatIsCalled(t *testing.T) {
	t.Parallel()
	path, err := cloud.SlowDisk(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	library, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer library.Close()
	symbols, err := library.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"fsync", "fdatasync"} {
		if !slices.ContainsFunc(symbols, func(s elf.Symbol) bool { return s.Name == want && s.Section != elf.SHN_UNDEF }) {
			t.Errorf("%s is not in the library", want)
		}
	}
}
