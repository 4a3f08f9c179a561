package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestMain is a server if this binary was started as one.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "-serve" {
		if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestRun: all clients of all servers receive all messages, and all numbers are
// printed. Whether the goal is met is not decided by so short a run.
func TestRun(t *testing.T) {
	var out bytes.Buffer
	err := run(t.Context(), []string{"-clients", "30", "-rounds", "1", "-time", "500ms"}, &out)
	if err != nil && !errors.Is(err, errMissed) {
		t.Fatal(err)
	}
	if rows := strings.Count(out.String(), "\n| "); rows != 12 || strings.Contains(out.String(), "NaN") {
		t.Errorf("%d rows, want 12:\n%s", rows, &out)
	}
}

// TestParse: frames of all lengths, in pieces of all sizes.
func TestParse(t *testing.T) {
	var stream []byte
	for _, size := range []int{1, 125, 126, 300, 70_000} {
		frame := masked(strings.Repeat("x", min(size, 300)))
		if size > 300 {
			frame = append([]byte{0x81, 0x80 | 127, 0, 0, 0, 0, 0, 1, 0x11, 0x70, 0, 0, 0, 0}, strings.Repeat("x", size)...)
		}
		head := len(frame) - min(size, 300) - 4
		if size > 300 {
			head = 10
		}
		frame[1] &^= 0x80 // a server masks nothing
		stream = append(append(stream, frame[:head]...), frame[head+4:]...)
	}
	stream = append(stream, "\x81\x03{}\n"...) // centrifuge joins two messages
	for _, piece := range []int{1, 7, 1000, len(stream)} {
		c, of := &clients{}, &conn{}
		for rest := stream; len(rest) > 0; rest = rest[min(piece, len(rest)):] {
			if err := c.parse(of, rest[:min(piece, len(rest))]); err != nil {
				t.Fatal(err)
			}
		}
		if c.frames != 6 || c.messages != 7 {
			t.Errorf("in pieces of %d bytes: %d frames and %d messages, want 6 and 7", piece, c.frames, c.messages)
		}
	}
}
