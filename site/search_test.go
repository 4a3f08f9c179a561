package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest/chromium"
)

// TestSearchFindsWhatReadersAskFor types queries of readers who do not know Semel's words, and
// looks at the first result.
func TestSearchFindsWhatReadersAskFor(t *testing.T) {
	server := serve(t)
	b := chromium.Open(t)
	for start, queries := range map[string]map[string]string{
		"/index.html": {
			// Other forms of a page's words.
			"upgrade": "docs/upgrading.html", "Upgrades": "docs/upgrading.html", "email": "docs/recipes/email.html",
			"e-mail": "docs/recipes/email.html", "test": "docs/testing.html", "migrate": "docs/migrations.html",
			"webhook": "docs/recipes/webhooks.html", "ErrMismatch": "docs/errors.html", "in-doubt": "docs/in-doubt.html", "in doubt": "docs/in-doubt.html",
			// Several words.
			"email consumer": "docs/recipes/email.html", "graceful shutdown": "docs/tasks.html", "unit test": "docs/testing.html",
			"cleanup old records": "docs/retention.html", "how do I test my handler?": "docs/testing.html",
			"kafka unheardof": "docs/messages.html", "dead letter queue": "docs/tasks.html", "idempotency key": "docs/http.html",
			// Words of others.
			"runbook": "docs/in-doubt.html", "3am": "docs/in-doubt.html", "logging": "docs/observability.html",
			"kill -9": "docs/guarantees.html", "stripe": "docs/recipes/payment.html", "double charge": "docs/recipes/payment.html",
			"exactly once": "docs/choosing.html", "cron": "docs/tasks.html", "prometheus": "docs/observability.html",
			"ttl": "docs/retention.html", "install": "docs/quickstart.html", "timeout": "docs/settings.html",
			"postgres": "docs/stores.html", "benchmark": "docs/performance.html", "mock": "docs/testing.html",
			// Pages about the inside come first only for their own names.
			"redis": "docs/stores.html", "decisions": "docs/decisions/index.html", "conformance": "docs/conformance/index.html",
		},
		"/index.zh-CN.html": {
			"邮件": "docs/recipes/email.zh-CN.html", "支付": "docs/recipes/payment.zh-CN.html", "升级": "docs/upgrading.zh-CN.html",
			"消费者": "docs/messages.zh-CN.html", "优雅退出": "docs/tasks.zh-CN.html", "单元测试": "docs/testing.zh-CN.html",
			"清理旧记录": "docs/retention.zh-CN.html", "重复扣款": "docs/recipes/payment.zh-CN.html", "HTTP中间件": "docs/http.zh-CN.html",
			"email": "docs/recipes/email.zh-CN.html", "值班": "docs/in-doubt.zh-CN.html", "日志": "docs/observability.zh-CN.html", "崩溃": "docs/guarantees.zh-CN.html",
		},
	} {
		b.Do(t, chromedp.Navigate(server.URL+start), chromedp.Focus(".search input"))
		b.Until(t, `index !== null`)
		for query, want := range queries {
			text, err := json.Marshal(query)
			check.Require(t, err)
			got := chromium.Read[string](t, b, `(field.value = `+string(text)+`, show(), document.querySelector("#found a")?.getAttribute("href").split("#")[0] ?? "nothing")`)
			check.Equal(t, got, want, "the first result for %q", query)
		}
		check.Equal(t, chromium.Read[string](t, b, `(field.value = "qqxxyy zzqqxx", show(), document.getElementById("found").textContent)`),
			chromium.Read[string](t, b, `document.body.dataset.none`), "words that occur nowhere")
	}
	const visible = `(field.value = "redis", show(), document.querySelector(".onpage").open = true, [...list.querySelectorAll("a")].slice(0, 3).every((a) => {
		const r = a.getBoundingClientRect();
		return r.left >= 0 && r.right <= innerWidth && a.contains(document.elementFromPoint(r.left + 20, r.top + 10));
	}))`
	for _, width := range []int64{1280, 390} {
		b.Do(t, chromedp.EmulateViewport(width, 900))
		check.Equal(t, chromium.Read[bool](t, b, visible), true, "%d pixels: the results are on the screen, above all else", width)
	}
}

// TestAliasesNamePages: an alias for a page that does not exist is an error.
func TestAliasesNamePages(t *testing.T) {
	source := t.TempDir()
	for _, name := range []string{"README.md", "README.zh-CN.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs/README.md", "docs/README.zh-CN.md"} {
		check.Require(t, write(source, name, []byte("# Title\n")))
	}
	check.Require(t, write(source, aliases, []byte("README.md: start, 开始\n")))
	out := filepath.Join(t.TempDir(), "site")
	check.Result(build(source, out))(t, 7, "a correct site")
	for _, language := range []string{"en", "zh-CN"} {
		index, err := os.ReadFile(filepath.Join(out, "search."+language+".js"))
		check.Require(t, err)
		check.Equal(t, strings.Count(string(index), `"a":["start","开始"]`), 1, "pages with the aliases in %s", language)
	}
	check.Require(t, write(source, aliases, []byte("docs/gone.md: word\n")))
	if _, err := build(source, out); err == nil || err.Error() != `site/aliases.txt: the page "docs/gone.md" does not exist` {
		t.Errorf("error %v", err)
	}
}
