package server

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"
)

func isMySQL(database string) bool { return strings.HasPrefix(database, "mysql://") }

// parseMySQL parses mysql://user:password@host:port/database?parameters. The parameters
// are those of the driver. Its errors contain no password.
func parseMySQL(address string) (*mysql.Config, error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || strings.Trim(u.Path, "/") == "" {
		return nil, errors.New("want mysql://user@host:port/database")
	}
	if u.Port() == "" {
		u.Host += ":3306"
	}
	c, err := mysql.ParseDSN("tcp(" + u.Host + ")/" + strings.Trim(u.Path, "/") + "?" + u.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	if c.Params == nil {
		c.Params = make(map[string]string)
	}
	return c, nil
}
