package sqlname_test

import (
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/sqlname"
)

func TestPrefix(t *testing.T) {
	for given, want := range map[string]string{
		"": "semel_", "app_": "app_", "_": "_", "a1": "a1", strings.Repeat("a", 30): strings.Repeat("a", 30),
	} {
		check.Result(sqlname.Prefix("Options.Prefix", given))(t, want, "Prefix(%q)", given)
	}
	for _, given := range []string{"App_", "1a", "a-b", "a b", `a"`, "a'", "a;", "é", "a.b", strings.Repeat("a", 31)} {
		if _, err := sqlname.Prefix("Options.Prefix", given); err == nil || !strings.Contains(err.Error(), "Options.Prefix") {
			t.Errorf("Prefix(%q) = %v, want an error that names the field", given, err)
		}
	}
}

func TestCheckSchema(t *testing.T) {
	for _, valid := range []string{"", "app", "_a1", strings.Repeat("a", 63)} {
		check.NoError(t, sqlname.CheckSchema("Options.Schema", valid), "CheckSchema(%q)", valid)
	}
	for _, invalid := range []string{"App", "1a", "a.b", `a"`, "a, public", "pg_app", strings.Repeat("a", 64)} {
		if err := sqlname.CheckSchema("Options.Schema", invalid); err == nil || !strings.Contains(err.Error(), "Options.Schema") {
			t.Errorf("CheckSchema(%q) = %v, want an error that names the field", invalid, err)
		}
	}
}

func TestRename(t *testing.T) {
	const text = `CREATE INDEX semel_due ON semel_records (x)`
	if got, want := sqlname.Rename(text, "app_"), `CREATE INDEX app_due ON app_records (x)`; got != want {
		t.Errorf("Rename = %s, want %s", got, want)
	}
	check.Equal(t, sqlname.Rename(text, sqlname.DefaultPrefix), text, "Rename with the default")
}
