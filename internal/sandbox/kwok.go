package sandbox

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Annotations that a test or a demo puts on a pod to slow it down; without
// them a pod is ready, done and gone at once. Values are Go durations.
const (
	// ReadyAfter delays the readiness of a pod.
	ReadyAfter = "sandbox.ebbtide.dev/ready-after"
	// CompleteAfter delays the success of the pod of a Job.
	CompleteAfter = "sandbox.ebbtide.dev/complete-after"
	// TerminateAfter delays the end of a deleted pod.
	TerminateAfter = "sandbox.ebbtide.dev/terminate-after"
)

// stagesFile holds the life cycle that kwok's own module describes.
const stagesFile = "kwok-stages.yaml"

// stageFiles are the files of kwok's module that make up that life cycle.
var stageFiles = []string{
	"node/fast/node-initialize.yaml",
	"node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
	"pod/fast/pod-ready.yaml",
	"pod/fast/pod-complete.yaml",
	"pod/fast/pod-delete.yaml",
}

//go:embed stages/*.yaml
var ownStages embed.FS

// copyStages puts kwok's own stages into a file next to the binaries, so that a
// sandbox starts without the module cache.
func copyStages(ctx context.Context, moduleDir, path string) error {
	out, err := goTool(ctx, moduleDir, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok")
	if err != nil {
		return err
	}
	root := filepath.Join(strings.TrimSpace(string(out)), "kustomize", "stage")
	var stages bytes.Buffer
	for _, file := range stageFiles {
		data, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return err
		}
		fmt.Fprintf(&stages, "---\n%s\n", data)
	}
	return writeFile(path, stages.Bytes())
}

// writeKwokConfig joins kwok's stages and ours into one file for kwok.
func writeKwokConfig(b Binaries, path string) error {
	config, err := os.ReadFile(b.Path(stagesFile))
	if err != nil {
		return err
	}
	files, err := fs.Glob(ownStages, "stages/*.yaml")
	if err != nil {
		return err
	}
	for _, file := range files {
		data, err := ownStages.ReadFile(file)
		if err != nil {
			return err
		}
		config = fmt.Appendf(config, "---\n%s\n", data)
	}
	return os.WriteFile(path, config, 0o600)
}
