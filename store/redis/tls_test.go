package redis_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	driver "github.com/redis/go-redis/v9"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store/redis"
)

// TestTLS: all connections of the store have the TLS settings of the client. The port speaks
// nothing else.
func TestTLS(t *testing.T) {
	t.Parallel()
	addr, trusted := tlsServer(t)
	for _, c := range []struct {
		config *tls.Config
		works  bool
	}{{&tls.Config{RootCAs: trusted}, true}, {&tls.Config{RootCAs: x509.NewCertPool()}, false}, {nil, false}} {
		client := driver.NewClient(&driver.Options{Addr: addr, TLSConfig: c.config, MaxRetries: -1})
		t.Cleanup(func() { client.Close() })
		s := newStore(t, client, redis.Options{})
		_, err := s.Capabilities(t.Context())
		check.Equal(t, err == nil, c.works, "with %+v: %v: the store works", c.config, err)
		if c.works {
			useAll(t, s)
		}
	}
}

// tlsServer starts a server with a port for TLS, and returns its address and the certificate
// that its clients must trust.
func tlsServer(t *testing.T) (addr string, trusted *x509.CertPool) {
	t.Helper()
	issuer := httptest.NewTLSServer(nil) // for its certificate, which is of 127.0.0.1
	defer issuer.Close()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		check.Require(t, os.Chmod(d, 0o755)) //nolint:gosec // the server runs as another user
	}
	key := check.Must(x509.MarshalPKCS8PrivateKey(issuer.TLS.Certificates[0].PrivateKey))(t)
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(dir, name)
		check.Require(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o644)) //nolint:gosec // as above
		return file
	}
	certificate := write("certificate.pem", "CERTIFICATE", issuer.Certificate().Raw)
	admin := realtest.OwnRedis(t,
		"tls-cert-file "+certificate, "tls-key-file "+write("key.pem", "PRIVATE KEY", key), "tls-ca-cert-file "+certificate, "tls-auth-clients no").Client(t)
	realtest.Poll(t, "a free port", func() bool {
		var listen net.ListenConfig
		free := check.Must(listen.Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
		addr = free.Addr().String()
		free.Close()
		_, port, _ := net.SplitHostPort(addr)
		return admin.ConfigSet(t.Context(), "tls-port", port).Err() == nil
	})
	trusted = x509.NewCertPool()
	trusted.AddCert(issuer.Certificate())
	return addr, trusted
}
