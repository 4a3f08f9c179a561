package redis

import (
	"context"
	"crypto/sha256"
	_ "embed" // the functions
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed functions.lua
var functions string

// module is the library of functions. A server that has a library of this name
// keeps it and does not compare the text, so the name contains a digest of the text.
type module struct{ name, text string }

func newLibrary() module {
	sum := sha256.Sum256([]byte(functions))
	name := "semel_" + hex.EncodeToString(sum[:8])
	return module{name: name, text: strings.ReplaceAll(functions, "LIBRARY", name)}
}

// load loads the library into a server, unless another caller has done it meanwhile.
func (l module) load(ctx context.Context, node *redis.Client) error {
	err := node.FunctionLoad(ctx, l.text).Err()
	if err == nil || strings.Contains(err.Error(), "already exists") {
		return nil
	}
	return fmt.Errorf("load functions: %w", err)
}

// isMissing reports whether a call failed because the server does not have the library. It
// was not executed then.
func isMissing(err error) bool { return redis.HasErrorPrefix(err, "Function not found") }
