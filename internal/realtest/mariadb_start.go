package realtest

import (
	"context"
	"database/sql"
	"fmt"
	"os/exec"
	"strconv"
)

// mariadbServer describes how a MariaDB server is started.
type mariadbServer struct {
	program string
	options []string // name=value
	env     []string // added to the environment
}

func launchMariaDB(program string, settings []string) launcher { return newMariaDB(program, settings) }

// newMariaDB takes settings that override the defaults. The server waits for the disk
// at each COMMIT, because the store reads that setting.
func newMariaDB(program string, settings []string) *mariadbServer {
	return &mariadbServer{program: program, options: append([]string{
		"bind-address=127.0.0.1", "skip-name-resolve=ON", "max-connections=400", "performance-schema=OFF",
		"innodb-buffer-pool-size=64M", "innodb-log-file-size=32M", "innodb-flush-log-at-trx-commit=1",
		"character-set-server=utf8mb4",
	}, settings...)}
}

func (m *mariadbServer) data(h *serverDir) string { return h.file("data") }

// prepare makes the server's files, with a superuser who needs no password.
func (m *mariadbServer) prepare(ctx context.Context, h *serverDir) error {
	ctx, cancel := context.WithTimeout(ctx, startCeiling)
	defer cancel()
	cmd := exec.CommandContext(ctx, beside(m.program, "mariadb-install-db"), "--no-defaults", "--datadir="+m.data(h),
		"--tmpdir="+h.dir, "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve",
		"--innodb-log-file-size=32M")
	cmd.Dir = h.dir
	log := h.file("install.log")
	made, err := start(cmd, h.as, log)
	if err != nil {
		return err
	}
	<-made.ended
	if !cmd.ProcessState.Success() {
		return fmt.Errorf("mariadb-install-db: %s\n%s", cmd.ProcessState, tail(log))
	}
	return nil
}

func (m *mariadbServer) launch(ctx context.Context, p *instance) (*process, error) {
	cmd := exec.Command(m.program, m.args(p)...) //nolint:noctx // it outlives the context that bounds its start
	cmd.Dir = p.serverDir.dir
	cmd.Env = append(cmd.Environ(), m.env...)
	return startUntil(ctx, cmd, p.serverDir.as, p.log(), speaksMySQL(p.url(), m.data(p.serverDir)+"/"))
}

func (m *mariadbServer) args(p *instance) []string {
	h := p.serverDir
	args := []string{
		"--no-defaults", "--datadir=" + m.data(h), "--tmpdir=" + h.dir, "--socket=" + h.file("mariadb.sock"),
		"--pid-file=" + h.file("mariadb.pid"), "--port=" + strconv.Itoa(p.port),
	}
	for _, o := range m.options {
		args = append(args, "--"+o)
	}
	return args
}

func (m *mariadbServer) url(addr string) string { return "mysql://root@" + addr + "/" }

// speaksMySQL is the probe of a server by the directory of its files.
func speaksMySQL(url, data string) readinessProbe {
	return readinessProbe{want: data, ask: func(ctx context.Context) (string, error) {
		c, err := mysqlConfig(url)
		if err != nil {
			return "", err
		}
		var got string
		err = withMySQL(ctx, c, func(ctx context.Context, db *sql.DB) error {
			return db.QueryRowContext(ctx, "SELECT @@datadir").Scan(&got)
		})
		return got, err
	}}
}
