package conform_test

import (
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	"github.com/semelgo/semel/cmd/semel/internal/conform"
	"github.com/semelgo/semel/internal/check"
)

// TestOverTLS runs the cases over TLS, and over HTTP/2 as browsers use it. The
// certificate is made known in the same way as by an operator.
func TestOverTLS(t *testing.T) {
	srv, p := unstarted(t)
	srv.EnableHTTP2 = true
	srv.Config.Protocols = nil
	srv.StartTLS()
	roots := filepath.Join(t.TempDir(), "roots.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	check.Require(t, os.WriteFile(roots, text, 0o600))
	t.Setenv("SSL_CERT_FILE", roots)
	o := brief()
	o.Only = []string{"1", "9", "14", "19", "30", "31", "33"}
	report := hold(t, srv.URL, p, o)
	for _, r := range report.Results {
		if r.Verdict != conform.Pass || r.Detail != "" {
			t.Errorf("case %s: %s: %s", r.ID, r.Verdict, r.Detail)
		}
	}
}
