package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/mod/modfile"
)

const modulePath = "ebbtide.dev/ebbtide"

// checkout returns the root of Ebbtide's source tree, in which the process must run, as make and
// tests do.
var checkout = sync.OnceValues(func() (root string, err error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && modfile.ModulePath(data) == modulePath {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("the sandbox is built from the source of Ebbtide; run this in a checkout of it")
		}
		dir = parent
	}
})

// ProgramDir returns the folder of the checkout in which its programs are linked.
//
// Errors: there is no checkout.
func ProgramDir() (string, error) {
	root, err := checkout()
	return filepath.Join(root, ".bin", "programs"), err
}
