package realtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Durable is a PostgreSQL, a MariaDB, a Redis or an etcd to measure with: unlike the PostgreSQLs for tests
// it waits for the disk, as one that people rely on does. It ends when it is closed, and
// with the process that started it.
type Durable struct{ own *instance }

// DurableOptions say how a [Durable] is started. The zero value is good.
type DurableOptions struct {
	// Settings are "name=value", as for postgres -c. They win over fsync,
	// full_page_writes and synchronous_commit, which are on, and over those of
	// all servers here.
	Settings []string
	// Env is "NAME=value", for the server's process beside what it inherits.
	Env []string
}

// StartDurable starts a PostgreSQL with files of its own, for a program that has
// no test to ask with. It fails where none is installed: an address in the
// environment is not used, because how that server waits is not ours to say.
func StartDurable(ctx context.Context, o DurableOptions) (*Durable, error) {
	with := func(program string, settings []string) launcher {
		waits := []string{"fsync=on", "full_page_writes=on", "synchronous_commit=on"}
		return &cluster{program: program, options: append(append(defaultCluster(), waits...), settings...), segment: 16, env: o.Env}
	}
	return startDurable(ctx, postgres(), with, o.Settings)
}

// StartDurableStandby starts a standby of the primary, with its name as its
// application_name.
func StartDurableStandby(ctx context.Context, primary *Durable, name string, o DurableOptions) (*Durable, error) {
	of, ok := primary.own.launcher.(*cluster)
	if !ok {
		return nil, errors.New("the primary is a standby itself")
	}
	copied := *of
	copied.options = append(slices.Clone(of.options), o.Settings...)
	p, err := run(ctx, &replica{cluster: copied, primary: primary.own, title: name})
	if err != nil {
		return nil, fmt.Errorf("start a standby: %w", err)
	}
	return &Durable{p}, nil
}

// URL is the server's address, as its superuser.
func (d *Durable) URL() string { return d.own.url() }

// PID is the process that started all others of the server.
func (d *Durable) PID() int { return d.own.proc.cmd.Process.Pid }

// Close ends the server and removes its files.
func (d *Durable) Close() error { return d.own.close() }

// StartDurableMariaDB starts a MariaDB with files of its own, as [StartDurable] does with
// PostgreSQL. Settings are "name=value", as in an option file. Its URL is
// mysql://root@host:port/.
func StartDurableMariaDB(ctx context.Context, settings ...string) (*Durable, error) {
	return startDurable(ctx, mariadb(), launchMariaDB, settings)
}

// StartDurableRedis starts a Redis with files of its own, likewise. Settings are
// "name value", as in a redis.conf. Its URL is redis://host:port.
func StartDurableRedis(ctx context.Context, settings ...string) (*Durable, error) {
	return startDurable(ctx, redisEngine(), launchRedis, settings)
}

func startDurable(ctx context.Context, e engine, with launcherFunc, settings []string) (*Durable, error) {
	e.env = ""
	at := thisMachine().find(e)
	if at == nil {
		return nil, errors.New("there is no " + e.program + " on this machine; on Debian: apt-get install " + e.packages)
	}
	p, err := run(ctx, with(at.program, settings))
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", e.name, err)
	}
	return &Durable{p}, nil
}

// StartDurableEtcd starts an etcd cluster of n members, likewise, and waits until it has a
// leader. The URL of a member is http://host:port.
func StartDurableEtcd(ctx context.Context, n int) (members []*Durable, err error) {
	nodes, err := newEtcdNodes(ctx, n)
	if err != nil {
		return nil, err
	}
	for _, node := range nodes {
		m, err := startDurable(ctx, etcdEngine(), node.launcher, nil)
		if err != nil {
			return nil, closeAll(err, members) //nolint:contextcheck // the servers end also if ctx has ended
		}
		members = append(members, m)
	}
	client, err := NewEtcdClient(members[0].URL())
	if err == nil {
		_, err = client.Get(ctx, "leader") // a linearizable read
		err = errors.Join(err, client.Close())
	}
	if err != nil {
		return nil, closeAll(err, members) //nolint:contextcheck // the servers end also if ctx has ended
	}
	return members, nil
}

// closeAll closes the servers because of err.
func closeAll(err error, servers []*Durable) error {
	for _, s := range servers {
		err = errors.Join(err, s.Close())
	}
	return err
}
