package realtest_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/realtest"
)

const debian = "/usr/lib/postgresql/%/bin/postgres"

func installed(versions ...string) []string {
	var paths []string
	for _, v := range versions {
		paths = append(paths, strings.Replace(debian, "%", v, 1))
	}
	return paths
}

// recordingTB records how a test ends, without ending it.
type recordingTB struct {
	testing.TB // has what is not asked for here

	engine, skipped, failed, erred string
}

func (v *recordingTB) Helper()               {}
func (v *recordingTB) Attr(_, engine string) { v.engine = engine }
func (v *recordingTB) Errorf(f string, _ ...any) {
	v.erred = f
}

func (v *recordingTB) Skip(args ...any) {
	v.skipped = args[0].(string)
	runtime.Goexit()
}

func (v *recordingTB) Fatalf(format string, args ...any) {
	v.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (v *recordingTB) Fatal(args ...any) {
	v.failed = args[0].(string)
	runtime.Goexit()
}

// need asks for a server in a test of its own.
func need(ask func(testing.TB) (url, program string)) (v *recordingTB, url, program string) {
	v = &recordingTB{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		url, program = ask(v)
	}()
	<-done
	return v, url, program
}

// TestServerIsFoundInOrder: in the environment, in a directory of the environment, in
// the PATH, elsewhere with the newest version first.
func TestServerIsFoundInOrder(t *testing.T) {
	t.Parallel()
	env := map[string]string{"SEMEL_TEST_POSTGRES_URL": "postgres://there"}
	path := map[string]string{"postgres": "/bin/postgres"}
	dir := map[string]string{"SEMEL_TEST_POSTGRES_BIN": "/opt/newest/bin"}
	rows := map[string]struct {
		machine      realtest.Machine
		url, program string
	}{
		"environment": {realtest.Machine{Env: env, Path: path, Installed: installed("15")}, "postgres://there", ""},
		"directory":   {realtest.Machine{Env: dir, Path: path, Installed: installed("15")}, "", "/opt/newest/bin/postgres"},
		"path":        {realtest.Machine{Path: path, Installed: installed("15")}, "", "/bin/postgres"},
		"installed":   {realtest.Machine{Installed: installed("15")}, "", installed("15")[0]},
		"newest":      {realtest.Machine{Installed: installed("9.6", "17", "16")}, "", installed("17")[0]},
		"newest, 9":   {realtest.Machine{Installed: installed("15", "9")}, "", installed("15")[0]},
	}
	for name, row := range rows {
		v, url, program := need(row.machine.Need)
		if url != row.url || program != row.program {
			t.Errorf("%s: found %q, %q, want %q, %q", name, url, program, row.url, row.program)
		}
		if v.engine != "postgres" || v.skipped+v.failed != "" {
			t.Errorf("%s: engine %q, skipped %q, failed %q", name, v.engine, v.skipped, v.failed)
		}
	}
}

// TestWrappedServerIsFoundBehindItsWrapper: what a system has in the PATH under
// RabbitMQ's name is for the system's own.
func TestWrappedServerIsFoundBehindItsWrapper(t *testing.T) {
	t.Parallel()
	env := map[string]string{"SEMEL_TEST_RABBITMQ_URL": "amqp://there"}
	path := map[string]string{"rabbitmq-server": "/usr/sbin/rabbitmq-server"}
	behind := []string{
		"/usr/lib/rabbitmq/lib/rabbitmq_server-3.10.8/sbin/rabbitmq-server",
		"/usr/lib/rabbitmq/lib/rabbitmq_server-3.9.27/sbin/rabbitmq-server",
	}
	rows := map[string]struct {
		machine      realtest.Machine
		url, program string
	}{
		"environment": {realtest.Machine{Env: env, Path: path, Installed: behind}, "amqp://there", ""},
		"behind":      {realtest.Machine{Path: path, Installed: behind}, "", behind[0]},
		"path":        {realtest.Machine{Path: path}, "", "/usr/sbin/rabbitmq-server"},
	}
	for name, row := range rows {
		v, url, program := need(row.machine.NeedRabbitMQ)
		if url != row.url || program != row.program || v.engine != "rabbitmq" {
			t.Errorf("%s: found %q, %q for %q, want %q, %q", name, url, program, v.engine, row.url, row.program)
		}
	}
	v, _, _ := need(realtest.Machine{Env: map[string]string{"SEMEL_TEST_REQUIRE": "rabbitmq"}}.NeedRabbitMQ)
	if !strings.Contains(v.failed, "apt-get install rabbitmq-server") {
		t.Errorf("without one, it failed with %q, want what to install", v.failed)
	}
}

// TestMissingServerSkipsOrFails: it fails if the server is required, and always
// says what to install.
func TestMissingServerSkipsOrFails(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		env   map[string]string
		fails bool
	}{
		"nothing said":     {nil, false},
		"CI":               {map[string]string{"CI": "true"}, true},
		"CI is 1":          {map[string]string{"CI": "1"}, true},
		"CI is false":      {map[string]string{"CI": "false"}, false},
		"CI is odd":        {map[string]string{"CI": "perhaps"}, false},
		"all":              {map[string]string{"SEMEL_TEST_REQUIRE": "all"}, true},
		"named":            {map[string]string{"SEMEL_TEST_REQUIRE": "redis, postgres"}, true},
		"another is named": {map[string]string{"SEMEL_TEST_REQUIRE": "redis"}, false},
	}
	for name, row := range rows {
		v, _, _ := need(realtest.Machine{Env: row.env}.Need)
		if row.fails != (v.failed != "") || row.fails == (v.skipped != "") {
			t.Errorf("%s: failed %q, skipped %q, want failed: %t", name, v.failed, v.skipped, row.fails)
		}
		if reason := v.failed + v.skipped; !strings.Contains(reason, "apt-get install postgresql") {
			t.Errorf("%s: the reason is %q, want one that says what to install", name, reason)
		}
		if v.engine != "" {
			t.Errorf("%s: %q ran", name, v.engine)
		}
	}
}
