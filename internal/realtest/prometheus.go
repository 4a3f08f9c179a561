package realtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"testing"

	"github.com/semelgo/semel/internal/check"
)

// prometheusEngine is Prometheus, tried with 2.42. SEMEL_TEST_PROMETHEUS_BIN is the directory of
// another prometheus and promtool.
func prometheusEngine(program string) engine {
	return engine{
		name: "prometheus", envDir: "SEMEL_TEST_PROMETHEUS_BIN", program: program,
		places: []string{"/usr/bin", "/opt/homebrew/bin"}, packages: "prometheus",
	}
}

// OwnPrometheus starts a Prometheus for this test alone, which ends with the test. config is its
// prometheus.yml, and rules the file rules.yml beside it.
func OwnPrometheus(tb testing.TB, config, rules string) *PrometheusServer {
	tb.Helper()
	return &PrometheusServer{ownHandle(tb, prometheusEngine("prometheus"), func(program string, _ []string) launcher {
		return &prometheusServer{program: program, config: config, rules: rules}
	}, nil)}
}

// PrometheusServer is a Prometheus. Its URL is http://host:port.
type PrometheusServer struct{ handle }

// Get decodes the data that the API returns for a path.
func (s *PrometheusServer) Get(tb testing.TB, path string, data any) {
	tb.Helper()
	check.Require(tb, getData(tb.Context(), s.URL()+path, data), "GET %s", path)
}

// CheckRules has promtool check a file of rules.
func CheckRules(tb testing.TB, path string) {
	tb.Helper()
	at := thisMachine().need(tb, prometheusEngine("promtool"))
	out, err := exec.CommandContext(tb.Context(), at.program, "check", "rules", path).CombinedOutput()
	check.NoError(tb, err, "promtool check rules: %s", out)
}

func getData(ctx context.Context, url string, data any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return fmt.Errorf("make a request: %w", err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("ask Prometheus: %w", err)
	}
	defer resp.Body.Close()
	reply := struct {
		Error string
		Data  any
	}{Data: data}
	if err := json.NewDecoder(resp.Body).Decode(&reply); err != nil {
		return fmt.Errorf("read the answer of Prometheus, %s: %w", resp.Status, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("prometheus answers %s: %s", resp.Status, reply.Error)
	}
	return nil
}

// prometheusServer describes how a Prometheus is started.
type prometheusServer struct{ program, config, rules string }

func (r *prometheusServer) prepare(_ context.Context, h *serverDir) error {
	if err := h.write("prometheus.yml", r.config); err != nil {
		return err
	}
	return h.write("rules.yml", r.rules)
}

func (r *prometheusServer) launch(ctx context.Context, p *instance) (*process, error) {
	config := p.serverDir.file("prometheus.yml")
	cmd := exec.Command(r.program, //nolint:noctx // it outlives the context that bounds its start
		"--config.file="+config, "--storage.tsdb.path="+p.serverDir.file("data"), "--web.listen-address="+p.addr(), "--log.level=warn")
	cmd.Dir = p.serverDir.dir
	return startUntil(ctx, cmd, p.serverDir.as, p.log(), readinessProbe{want: config, ask: func(ctx context.Context) (string, error) {
		flags := map[string]string{}
		err := getData(ctx, p.url()+"/api/v1/status/flags", &flags)
		return flags["config.file"], err
	}})
}

func (r *prometheusServer) url(addr string) string { return "http://" + addr }
