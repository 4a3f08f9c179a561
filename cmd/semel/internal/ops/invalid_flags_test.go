package ops_test

import (
	"strings"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// TestInvalidFlags: the error of an invalid command line names the flag, and nothing is changed. ID is
// the ID of a record in doubt, TASK that of a waiting one, NONE that of no record, and "" an empty argument.
func TestInvalidFlags(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	call, task := callOf("k"), mailOf("k")
	words := strings.NewReplacer(
		"ID", s.makeInDoubt(t, call), "TASK", s.enqueue(t, task, semel.EnqueueOptions{}), "NONE", strings.Repeat("0", 32),
		"NOTJSON", writeFile(t, "{"), "LARGE", writeFile(t, `"`+strings.Repeat("<", 1<<20/6+1)+`"`),
	)
	for _, tt := range []struct{ args, want string }{
		{"ls --state done", `--state "done" is none of pending, inprogress`},
		{"ls --state in-doubt", `--state "in-doubt" is none of pending, inprogress, indoubt`},
		{"ls --limit -1", "--limit -1"},
		{"ls --until -1h", `invalid time "-1h"`},
		{"ls --since long", `invalid time "long"`},
		{"ls --newest --oldest", "--newest or --oldest"},
		{"ls --newest --count", "--count cannot be combined"},
		{"ls --state succeeded --code c", "--code is for Failed"},
		{"ls --shared --scope s", "--scope or --shared, not both"},
		{"ls everything", "unknown command"},
		{"partitions list", "partitions are for PostgreSQL"},
		{"partitions divide", "partitions are for PostgreSQL"},
		{"partitions ahead", "partitions are for PostgreSQL"},
		{"partitions drop --keep 24h --yes", "partitions are for PostgreSQL"},
		{"cancel --all --reason r", "--all needs a flag"},
		{"cancel --all --limit 0 --reason r", "--all needs a flag that selects records"},
		{"cancel --all --overdue=false --reason r", "--all needs a flag that selects"},
		{`cancel --all --state "" --since 1h --reason r`, "--state is empty"},
		{`cancel --all --operation "" --since 1d --reason r`, "--operation is empty"},
		{`cancel --all --since "" --reason r`, "invalid time"},
		{"cancel --all --code c --reason r", "--code is for Failed"},
		{"redrive --all --since 1d --message --reason r", "--message with --all needs --operation"},
		{"redrive ID --state failed --since 1h --reason r", "--state, --since cannot be used without --all"},
		{"redrive ID --all --operation sms --reason r", "record IDs or --all, not both"},
		{"redrive --all --state succeeded --reason r", `--state "succeeded" is none of failed, indoubt`},
		{"redrive --all --operation sms", "--reason is required"},
		{"redrive TASK --delay -1s --reason r", "--delay -1s"},
		{"reschedule TASK --reason r", "--delay is required"},
		{"reschedule TASK --delay -1s --reason r", "--delay -1s"},
		{"cancel TASK --retention 1ms --reason r", "--retention must be long"},
		{"resolve --all --operation charge --to succeeded --result NOTJSON --reason r", "--result requires a single record"},
		{"resolve ID it --to pending --reason r", "is not a record ID"},
		{"resolve ID - --to pending --reason r", "not both"},
		{"resolve ID ID --operation charge --to pending --reason r", "give record IDs, or"},
		{"resolve ID NONE --to succeeded --result NOTJSON --reason r", "--result requires a single"},
		{"resolve ID --reason r", "--to is required"},
		{"resolve ID --to done --reason r", `--to "done" is none of`},
		{"resolve ID --to indoubt --reason r", `--to "indoubt" is none`},
		{`resolve ID --to failed --reason ""`, "--reason is required"},
		{"resolve ID --to failed --reason r --result NOTJSON", "--result requires --to"},
		{"resolve ID --result NOTJSON --to succeeded --reason r", "--result is not JSON"},
		{"resolve ID --result NOTJSON.none --to succeeded --reason r", "--result: open"},
		{"resolve ID --result LARGE --to succeeded --reason r", "the store keeps less"},
		{"resolve ID --any-form --to succeeded --reason r", "--any-form requires"},
		{"resolve ID --raw --to succeeded --reason r", "--raw requires"},
		{"resolve ID --failure-code c --to succeeded --reason r", "--failure-code and"},
		{"resolve ID --retention 0 --to succeeded --reason r", "--retention must be more"},
		{"resolve ID --retention 1ms --to succeeded --reason r", "--retention must be long"},
		{"resolve xID --to succeeded --reason r", "is not a record ID"},
		{"resolve ID --key k --to succeeded --reason r", "not both"},
		{"resolve --to succeeded --reason r", "give the record's ID"},
		{"resolve --operation charge --to succeeded --reason r", "--key is required"},
		{"resolve --key k --to succeeded --reason r", "--operation is required"},
		{"resolve --operation charge --key k --to succeeded --reason r", "--scope is required"},
		{`resolve --operation charge --key k --scope "" --to succeeded --reason r`, "--scope must not be"},
		{"resolve --operation charge --key k --scope s --shared --to succeeded --reason r", "--scope or --shared"},
	} {
		s.runOn(t, arguments(words, tt.args)...).want(t, exit.Usage, tt.want)
	}
	for _, command := range []string{"redrive", "cancel", "reschedule --delay 0"} {
		for args, want := range map[string]string{
			`TASK --reason ""`:              "--reason is required",
			"TASK --reason r --retention 0": "--retention must be more",
			"--reason r":                    "give the record's ID",
			"TASK --key k --reason r":       "not both",
			"TASK it --reason r":            "is not a record ID",
		} {
			s.runOn(t, arguments(words, command+" "+args)...).want(t, exit.Usage, want)
		}
		s.runOn(t, arguments(words, command+" NONE --reason r")...).want(t, exit.NotFound, "there is no record")
	}
	s.runOn(t, arguments(words, "redrive TASK --reason r")...).want(t, exit.Refused, "is Pending, not a dead letter")
	// Flags accept durations in the format of lists.
	for _, text := range []string{"1d", "29d23h", "1d12h30m", "90m"} {
		s.must(t, "ls", "--until", text)
	}
	for _, text := range []string{"d", "1.5d", "-1d", "1d-1h", "1h1d", "1dd", "1d+1h", "200000d", "106751d23h59m"} {
		s.runOn(t, "ls", "--until", text).want(t, exit.Usage, "--until")
	}
	check.Equal(t, s.state(t, call), store.InDoubt, "the record in doubt")
	check.Equal(t, s.state(t, task), store.Pending, "the task")
	s.wantNotes(t, task.ID().String())
}

// arguments splits a command line and replaces its words.
func arguments(words *strings.Replacer, line string) []string {
	all := strings.Fields(words.Replace(line))
	for i, word := range all {
		if word == `""` {
			all[i] = ""
		}
	}
	return all
}

func TestInvalidFlagsOfPartitions(t *testing.T) {
	t.Parallel()
	s := newPostgres(t)
	for args, want := range map[string]string{
		"drop":                 "--keep is required",
		"drop --keep 0":        "--keep must be more",
		"ahead --width 1s":     "--width 1s",
		"divide --width 60.5s": "--width 1m0.5s",
		"divide --width 0":     "--width 0s",
		"ahead --ahead 0":      "--ahead 0",
		"list all":             "unknown command",
	} {
		s.runOn(t, strings.Fields("partitions "+args)...).want(t, exit.Usage, want)
	}
}
