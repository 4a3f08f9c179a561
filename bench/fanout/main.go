// Command fanout measures the chat's hub beside centrifuge: memory per session,
// deliveries per second and per processor second, and the latency of a message to
// all sessions.
//
//	go run ./fanout [-clients 10000] [-rounds 3]
//
// Each server is a process of its own, and this process is the client of all
// connections, with one epoll loop. Both servers take turns; each turn starts a new
// server. It needs Linux and a limit of open files above the number of clients.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

type settings struct {
	clients, rounds int
	seconds         time.Duration
	window          int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fanout:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var o settings
	flags := flag.NewFlagSet("fanout", flag.ContinueOnError)
	flags.IntVar(&o.clients, "clients", 10_000, "number of connections")
	flags.IntVar(&o.rounds, "rounds", 3, "turns of each server; medians are printed")
	flags.DurationVar(&o.seconds, "time", 5*time.Second, "length of each measurement")
	flags.IntVar(&o.window, "window", 16, "messages in flight in the second measurement")
	serve := flags.String("serve", "", "be a server of this kind, for another process")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *serve != "" {
		return serveKind(ctx, *serve, os.Stdin, out)
	}
	all := make(map[string][]result)
	for range o.rounds {
		for _, kind := range kinds() {
			r, err := measure(ctx, kind, o)
			if err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
			all[kind] = append(all[kind], r)
		}
	}
	return report(out, o, all)
}

// result is what one turn of a server has shown.
type result struct {
	memory, heap float64 // bytes per session: resident when idle; heap and stacks after a collection
	goroutines   float64 // per session
	single, many phase   // with one message in flight, and with several
	p50, p99     time.Duration
}

// phase is a measurement under load.
type phase struct {
	rate  float64       // deliveries per second
	cpu   time.Duration // of the server, per delivery
	joint float64       // messages per write
}

func report(out io.Writer, o settings, all map[string][]result) error {
	fmt.Fprintf(out, "%d sessions, 256-byte messages, medians of %d turns\n\n", o.clients, o.rounds)
	rows := []struct {
		name  string
		value func(result) float64
		unit  string
	}{
		{"resident memory per idle session", func(r result) float64 { return r.memory / 1000 }, "kB"},
		{"heap and stacks per idle session", func(r result) float64 { return r.heap / 1000 }, "kB"},
		{"goroutines per session", func(r result) float64 { return r.goroutines }, ""},
		{"deliveries/s, 1 in flight", func(r result) float64 { return r.single.rate }, ""},
		{"server CPU per delivery, 1 in flight", func(r result) float64 { return micro(r.single.cpu) }, "µs"},
		{"messages per write, 1 in flight", func(r result) float64 { return r.single.joint }, ""},
		{fmt.Sprintf("deliveries/s, %d in flight", o.window), func(r result) float64 { return r.many.rate }, ""},
		{fmt.Sprintf("server CPU per delivery, %d in flight", o.window), func(r result) float64 { return micro(r.many.cpu) }, "µs"},
		{fmt.Sprintf("messages per write, %d in flight", o.window), func(r result) float64 { return r.many.joint }, ""},
		{"p50 of a delivery, 2 messages/s to all", func(r result) float64 { return micro(r.p50) / 1000 }, "ms"},
		{"p99 of a delivery, 2 messages/s to all", func(r result) float64 { return micro(r.p99) / 1000 }, "ms"},
	}
	fmt.Fprint(out, "| |")
	for _, kind := range kinds() {
		fmt.Fprintf(out, " %s |", kind)
	}
	fmt.Fprintf(out, "\n|---|---|---|---|\n")
	middle := make(map[string]map[string]float64)
	for _, row := range rows {
		fmt.Fprintf(out, "| %s |", row.name)
		middle[row.name] = make(map[string]float64)
		for _, kind := range kinds() {
			v := median(all[kind], row.value)
			middle[row.name][kind] = v
			fmt.Fprintf(out, " %.*f %s |", digits(v), v, row.unit)
		}
		fmt.Fprintln(out)
	}
	cpu, memory := middle["server CPU per delivery, 1 in flight"], middle["resident memory per idle session"]
	fmt.Fprintf(out, "\ndeliveries per CPU, 1 in flight, compared with centrifuge: %.2f; memory: %.2f\n",
		cpu[kindCentrifuge]/cpu[kindHub], memory[kindHub]/memory[kindCentrifuge])
	if cpu[kindHub] > cpu[kindCentrifuge] || memory[kindHub] >= memory[kindCentrifuge] {
		return errMissed
	}
	return nil
}

var errMissed = errors.New("the goal was missed: at least centrifuge's deliveries per CPU, and less memory")

func micro(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

func digits(v float64) int {
	if v >= 1000 {
		return 0
	}
	return 1
}

func median(of []result, value func(result) float64) float64 {
	all := make([]float64, 0, len(of))
	for _, r := range of {
		all = append(all, value(r))
	}
	slices.SortFunc(all, cmp.Compare[float64])
	return all[len(all)/2]
}
