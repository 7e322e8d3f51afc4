package lab

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"

	"ebbtide.dev/ebbtide/test/bench/report"
)

// sources are the packages of the peers' binaries. Each is built in the module
// that pins its libraries. The control plane brings the manager itself.
var sources = map[string]struct{ module, pkg string }{
	report.Oracle:  {"test/bench", "./oracle"},
	Kubectl:        {"test/bench", "./kubectl"},
	KubectlShipped: {"test/bench", "./kubectl"},
	ClusterAPI:     {"test/bench/clusterapi", "."},
}

// build compiles the peers among the contenders of these names.
func (l *Lab) build(ctx context.Context, root string, names []string, progress io.Writer) error {
	for _, name := range names {
		source, known := sources[name]
		if name == report.Ebbtide {
			continue
		}
		if !known {
			return fmt.Errorf("there is no contender %q; those are %v", name, Names())
		}
		fmt.Fprintln(progress, "building", name)
		command := exec.CommandContext(ctx, "go", "build", "-o", l.bin+"/", source.pkg)
		command.Dir = filepath.Join(root, source.module)
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", name, err, output)
		}
	}
	return nil
}
