package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/mod/modfile"
)

const modulePath = "ebbtide.dev/ebbtide"

// checkout returns the root of Ebbtide's source tree when the process runs in
// it, as tests and make do.
var checkout = sync.OnceValues(func() (string, bool) {
	dir, err := os.Getwd()
	if err != nil {
		return "", false
	}
	for {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && modfile.ModulePath(data) == modulePath {
			return dir, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
})

// defaultBinDir is where binaries go unless the caller says otherwise.
func defaultBinDir() (string, error) {
	if root, ok := checkout(); ok {
		return filepath.Join(root, ".bin"), nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a folder for the control plane binaries: %w", err)
	}
	return filepath.Join(cache, "ebbtide"), nil
}
